"""The login that the demo uses."""

from pathlib import Path

import pytest

from cc_demo.login import AnswerSource, Choice, choose_login


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Return an environment without a login."""
    return {"HOME": str(tmp_path)}


def choose(env: dict[str, str], platform: str = "linux", *, offline: bool = False, login: bool = False) -> Choice:
    return choose_login(env, platform, offline=offline, login=login)


def make_credentials(folder: Path) -> None:
    folder.mkdir()
    (folder / ".credentials.json").touch()


@pytest.mark.parametrize(("platform", "advice"), [("linux", "type /login"), ("darwin", "--login")])
def test_without_a_login_the_demo_is_offline_with_advice(env: dict[str, str], platform: str, advice: str) -> None:
    """macOS has a keychain, which is not read."""
    choice = choose(env, platform)
    assert choice.login is AnswerSource.OFFLINE
    assert advice in choice.advice


def test_an_option_wins_over_a_key_and_a_key_over_a_login(env: dict[str, str], tmp_path: Path) -> None:
    """ARCH-34."""
    make_credentials(tmp_path / ".claude")
    with_key = {**env, "ANTHROPIC_API_KEY": "key"}
    assert choose(with_key, offline=True).login is AnswerSource.OFFLINE
    assert choose(with_key, login=True).login is AnswerSource.CLAUDE_CODE
    assert choose(with_key).login is AnswerSource.API_KEY


@pytest.mark.parametrize(("name", "value"), [("ANTHROPIC_API_KEY", ""), ("CLAUDE_CODE_USE_VERTEX", "0")])
def test_an_empty_or_disabled_variable_is_not_a_login(name: str, value: str, env: dict[str, str]) -> None:
    assert choose({**env, name: value}).login is AnswerSource.OFFLINE


def test_another_address_is_shown_without_its_password(env: dict[str, str]) -> None:
    address = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "https://user:secret@gateway.example/v1?token=secret"}
    reason = choose({**env, **address}).reason
    assert "gateway.example" in reason
    assert "secret" not in reason


def test_a_credentials_file_counts_in_home_and_config_folder(env: dict[str, str], tmp_path: Path) -> None:
    make_credentials(tmp_path / ".claude")
    make_credentials(tmp_path / "config")
    choice = choose(env)
    assert choice.login is AnswerSource.CLAUDE_CODE
    assert str(tmp_path) in choice.reason
    assert choose({**env, "CLAUDE_CONFIG_DIR": str(tmp_path / "config")}).login is AnswerSource.CLAUDE_CODE
    assert choose({**env, "CLAUDE_CONFIG_DIR": str(tmp_path / "none")}).login is AnswerSource.OFFLINE


@pytest.mark.parametrize("name", ["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"])
def test_a_login_variable_counts(name: str, env: dict[str, str]) -> None:
    choice = choose({**env, name: "1"})
    assert (choice.login, choice.reason) == (AnswerSource.CLAUDE_CODE, f"{name} is set")
