"""Files of a process on the machine, and their visibility to other users."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from claude_agent_sdk import ClaudeAgentOptions, McpServerConfig, SandboxSettings

from cc_loopback import LoopbackServer
from cc_session import Session, sealed_options
from cc_session.process.private_folder import PrivateFolder
from cc_types import CLIConnectionError

from .conftest import ask


def command_line(session: Session) -> str:
    return Path(f"/proc/{session.pid}/cmdline").read_text(encoding="utf-8")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def files(folder: Path, pattern: str = "*") -> set[Path]:
    return {*folder.glob(pattern)}


def system_of(server: LoopbackServer) -> str:
    return json.dumps(server.requests[-1]["system"])


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the system shows no command lines there")
@pytest.mark.parametrize(
    "system_prompt",
    [
        "The password is s3cret.",
        {"type": "custom", "prompt": "The password is s3cret."},
        {"type": "preset", "preset": "claude_code", "append": "The password is s3cret."},
    ],
)
async def test_the_system_prompt_reaches_the_model_and_no_other_user(
    server: LoopbackServer, options: ClaudeAgentOptions, temporary: Path, system_prompt: Any
) -> None:
    """SES-27."""
    old_umask = os.umask(0)
    try:
        async with await Session.open(replace(options, system_prompt=system_prompt)) as session:
            assert "s3cret" not in command_line(session)
            [folder] = files(temporary, "cc-session-*")
            assert mode(folder) == 0o700
            assert mode(folder / "system-prompt.md") == 0o600
            await ask(session, "Hello.")
    finally:
        os.umask(old_umask)

    assert "The password is s3cret." in system_of(server)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the system shows no command lines there")
@pytest.mark.parametrize("as_text", [False, True])
async def test_secrets_of_mcp_servers_and_settings_are_not_on_the_command_line(
    server: LoopbackServer, options: ClaudeAgentOptions, temporary: Path, as_text: bool
) -> None:
    """SES-91: servers as a dict; or as JSON, and settings with a sandbox, which the SDK would merge."""
    servers: dict[str, McpServerConfig] = {
        "remote": {"type": "http", "url": server.url, "headers": {"Authorization": "Bearer s3cret"}}
    }
    given: Any = json.dumps({"mcpServers": servers}) if as_text else servers
    settings = json.dumps({"env": {"TOKEN": "s3cret"}})
    sandbox: SandboxSettings | None = {"network": {"allowedDomains": ["s3cret.example"]}} if as_text else None
    options = replace(options, mcp_servers=given, settings=settings, sandbox=sandbox)
    async with await Session.open(options) as session:
        assert "s3cret" not in command_line(session)
        assert {mode(file) for file in files(temporary, "cc-session-*/*.json")} == {0o600}
        [file] = files(temporary, "cc-session-*/settings.json")
        assert json.loads(file.read_text()) == json.loads(settings) | ({} if sandbox is None else {"sandbox": sandbox})
        status = await session.control("mcp_status")
        assert [cast("dict[str, Any]", entry)["name"] for entry in cast("list[Any]", status["mcpServers"])] == [
            "remote"
        ]


def private_settings(settings: str | None, folder: Path) -> Any:
    """Return the settings of a process with a sandbox, as the CLI gets them."""
    private = PrivateFolder()
    try:
        options = private.options(ClaudeAgentOptions(settings=settings, sandbox={"enabled": True}, cwd=folder))
        assert options.sandbox is None
        return json.loads(Path(options.settings or "").read_text(encoding="utf-8"))
    finally:
        private.remove()


def test_a_sandbox_is_added_to_the_settings_in_a_file_or_to_none(tmp_path: Path) -> None:
    """SES-91."""
    file = tmp_path / "own.json"
    file.write_text('{"model": "x"}', encoding="utf-8-sig")
    both = {"model": "x", "sandbox": {"enabled": True}}
    assert private_settings("own.json", tmp_path) == private_settings(str(file), tmp_path) == both
    assert private_settings(None, tmp_path) == {"sandbox": {"enabled": True}}
    assert json.loads(file.read_text(encoding="utf-8-sig")) == {"model": "x"}


@pytest.mark.parametrize("settings", ["missing.json", '{"broken"', "list.json"])
def test_settings_that_cannot_be_read_are_an_error_and_not_left_out(settings: str, tmp_path: Path) -> None:
    """SES-91: permissions and hooks may be in them."""
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(CLIConnectionError, match=r"settings cannot be read: .*sandbox"):
        private_settings(settings, tmp_path)


async def test_a_process_writes_to_its_private_folder_only_and_that_goes(
    server: LoopbackServer, tmp_path: Path, temporary: Path
) -> None:
    """SES-27: in bare mode, in which there is no login to find in the user's folders."""
    home = tmp_path / "home"
    home.mkdir()
    env = server.env() | {"HOME": str(home)}
    del env["CLAUDE_CONFIG_DIR"]
    before = files(temporary)
    async with await Session.open(sealed_options(env=env)) as session:
        await ask(session, "Hello.")
        [folder] = files(temporary) - before
        assert Path(os.readlink(f"/proc/{session.pid}/cwd")) == folder / "cwd"

    assert not files(home)
    assert files(temporary) == before


async def test_without_a_system_prompt_there_is_none_and_the_caller_s_own_folder_is_used_and_stays(
    server: LoopbackServer, options: ClaudeAgentOptions, tmp_path: Path
) -> None:
    """Two short lines of the CLI's own remain of the prompt."""
    async with await Session.open(replace(options, system_prompt="", cwd=tmp_path)) as session:
        messages = await ask(session, "Hello.")

    assert len(system_of(server)) < 500
    [init] = [message for message in messages if getattr(message, "subtype", None) == "init"]
    assert cast(Any, init).data["cwd"] == str(tmp_path)
    assert not files(tmp_path)


async def test_without_a_place_for_its_folder_a_session_says_so(
    options: ClaudeAgentOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(CLIConnectionError, match="no private folder"):
        await Session.open(options)


def delete_nothing(path: Path, ignore_errors: bool) -> None:
    pass


async def test_a_folder_that_cannot_be_deleted_now_goes_with_the_next_one(
    options: ClaudeAgentOptions, monkeypatch: pytest.MonkeyPatch, temporary: Path
) -> None:
    """Nothing can be deleted where descriptors have run out."""
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", delete_nothing)
        async with await Session.open(options):
            pass
        assert files(temporary, "cc-session-*")
    async with await Session.open(options):
        pass
    assert not files(temporary, "cc-session-*")
