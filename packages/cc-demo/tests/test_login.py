"""Login that the demo uses."""

from pathlib import Path

import pytest

from cc_demo.login import AnswerSource, Choice, choose_login


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Return an environment without a login."""
    return {"HOME": str(tmp_path)}


def chosen(env: dict[str, str], platform: str = "linux", *, offline: bool = False, login: bool = False) -> Choice:
    return choose_login(env, platform, offline=offline, login=login)


def make_credentials(folder: Path) -> None:
    folder.mkdir()
    (folder / ".credentials.json").touch()


@pytest.mark.parametrize(("platform", "advice"), [("linux", "type /login"), ("darwin", "--login")])
def test_nothing_found_is_offline_and_says_how_to_log_in(env: dict[str, str], platform: str, advice: str) -> None:
    """macOS has a keychain, which is not read."""
    choice = chosen(env, platform)
    assert choice.login is AnswerSource.OFFLINE
    assert advice in choice.advice


def test_what_is_asked_for_wins_over_a_key_and_a_key_over_a_login(env: dict[str, str], tmp_path: Path) -> None:
    """ARCH-34."""
    make_credentials(tmp_path / ".claude")
    with_key = {**env, "ANTHROPIC_API_KEY": "key"}
    assert chosen(with_key, offline=True).login is AnswerSource.OFFLINE
    assert chosen(with_key, login=True).login is AnswerSource.CLAUDE_CODE
    assert chosen(with_key).login is AnswerSource.API_KEY


@pytest.mark.parametrize(("name", "value"), [("ANTHROPIC_API_KEY", ""), ("CLAUDE_CODE_USE_VERTEX", "0")])
def test_what_is_empty_or_switched_off_is_no_login(name: str, value: str, env: dict[str, str]) -> None:
    assert chosen({**env, name: value}).login is AnswerSource.OFFLINE


def test_other_address_is_told_without_its_password(env: dict[str, str]) -> None:
    address = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "https://user:secret@gateway.example/v1?token=secret"}
    reason = chosen({**env, **address}).reason
    assert "gateway.example" in reason
    assert "secret" not in reason


def test_credentials_file_is_found_in_the_home_or_in_the_config_folder(env: dict[str, str], tmp_path: Path) -> None:
    make_credentials(tmp_path / ".claude")
    make_credentials(tmp_path / "config")
    choice = chosen(env)
    assert choice.login is AnswerSource.CLAUDE_CODE
    assert str(tmp_path) in choice.reason
    assert chosen({**env, "CLAUDE_CONFIG_DIR": str(tmp_path / "config")}).login is AnswerSource.CLAUDE_CODE
    assert chosen({**env, "CLAUDE_CONFIG_DIR": str(tmp_path / "none")}).login is AnswerSource.OFFLINE


@pytest.mark.parametrize("name", ["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"])
def test_variable_that_logs_claude_code_in_is_found(name: str, env: dict[str, str]) -> None:
    choice = chosen({**env, name: "1"})
    assert (choice.login, choice.reason) == (AnswerSource.CLAUDE_CODE, f"{name} is set")
