"""Files of a process on the machine, and their visibility to other users."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from claude_agent_sdk import ClaudeAgentOptions, McpServerConfig

from cc_loopback import LoopbackServer
from cc_session import Session, sealed_options
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
async def test_secrets_of_mcp_servers_and_settings_are_not_on_the_command_line(
    server: LoopbackServer, options: ClaudeAgentOptions, temporary: Path
) -> None:
    servers: dict[str, McpServerConfig] = {
        "remote": {"type": "http", "url": server.url, "headers": {"Authorization": "Bearer s3cret"}}
    }
    settings = json.dumps({"env": {"TOKEN": "s3cret"}})
    async with await Session.open(replace(options, mcp_servers=servers, settings=settings)) as session:
        assert "s3cret" not in command_line(session)
        assert {mode(file) for file in files(temporary, "cc-session-*/*.json")} == {0o600}
        status = await session.control("mcp_status")
        assert [cast("dict[str, Any]", entry)["name"] for entry in cast("list[Any]", status["mcpServers"])] == [
            "remote"
        ]


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
