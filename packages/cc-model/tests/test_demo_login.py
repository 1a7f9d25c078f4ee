"""Which login the demo uses."""

from pathlib import Path

import pytest

from cc_model.demo.login import Login, choose_login


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment without a login."""
    return {"HOME": str(tmp_path)}


def chosen(env: dict[str, str], platform: str = "linux", *, offline: bool = False, login: bool = False) -> Login:
    return choose_login(env, platform, offline=offline, login=login).login


def make_credentials(folder: Path) -> None:
    folder.mkdir()
    (folder / ".credentials.json").touch()


def test_nothing_found_is_offline_and_says_how_to_log_in(env: dict[str, str]) -> None:
    choice = choose_login(env, "linux", offline=False, login=False)
    assert choice.login is Login.OFFLINE
    assert "type /login" in choice.advice


def test_keychain_is_named_where_there_is_one(env: dict[str, str]) -> None:
    choice = choose_login(env, "darwin", offline=False, login=False)
    assert choice.login is Login.OFFLINE
    assert "--login" in choice.advice


def test_offline_wins_over_a_key(env: dict[str, str]) -> None:
    assert chosen({**env, "ANTHROPIC_API_KEY": "key"}, offline=True) is Login.OFFLINE


def test_asked_for_login_wins_over_a_key(env: dict[str, str]) -> None:
    assert chosen({**env, "ANTHROPIC_API_KEY": "key"}, login=True) is Login.CLAUDE_CODE


def test_key_wins_over_a_login(env: dict[str, str], tmp_path: Path) -> None:
    make_credentials(tmp_path / ".claude")
    assert chosen({**env, "ANTHROPIC_API_KEY": "key"}) is Login.API_KEY


def test_empty_key_is_none(env: dict[str, str]) -> None:
    assert chosen({**env, "ANTHROPIC_API_KEY": ""}) is Login.OFFLINE


def test_other_address_is_told_without_its_password(env: dict[str, str]) -> None:
    address = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "https://user:secret@gateway.example/v1?token=secret"}
    reason = choose_login({**env, **address}, "linux", offline=False, login=False).reason
    assert "gateway.example" in reason
    assert "secret" not in reason


def test_credentials_file_in_the_home_is_found(env: dict[str, str], tmp_path: Path) -> None:
    make_credentials(tmp_path / ".claude")
    choice = choose_login(env, "linux", offline=False, login=False)
    assert choice.login is Login.CLAUDE_CODE
    assert str(tmp_path) in choice.reason


def test_config_folder_is_looked_at_instead_of_the_home(env: dict[str, str], tmp_path: Path) -> None:
    make_credentials(tmp_path / ".claude")
    make_credentials(tmp_path / "config")
    assert chosen({**env, "CLAUDE_CONFIG_DIR": str(tmp_path / "config")}) is Login.CLAUDE_CODE
    assert chosen({**env, "CLAUDE_CONFIG_DIR": str(tmp_path / "none")}) is Login.OFFLINE


@pytest.mark.parametrize("name", ["CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"])
def test_variable_that_logs_claude_code_in_is_found(name: str, env: dict[str, str]) -> None:
    choice = choose_login({**env, name: "1"}, "linux", offline=False, login=False)
    assert (choice.login, choice.reason) == (Login.CLAUDE_CODE, f"{name} is set")


def test_cloud_that_is_switched_off_is_no_login(env: dict[str, str]) -> None:
    assert chosen({**env, "CLAUDE_CODE_USE_VERTEX": "0"}) is Login.OFFLINE
