"""A process's files on the machine, and their visibility to other users."""

import json
import os
import re
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import pytest
from claude_agent_sdk import ClaudeAgentOptions, McpServerConfig, SandboxSettings

from cc_loopback import LoopbackServer
from cc_session import Session, sealed_options
from cc_session.process.private_folder import PrivateFolder
from cc_types import CLIConnectionError

from .conftest import STDIO_SERVER, ask, bash, calling, results_of, until, use


def command_line(session: Session) -> str:
    return Path(f"/proc/{session.pid}/cmdline").read_text(encoding="utf-8")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def files(folder: Path, pattern: str = "*") -> set[Path]:
    return {*folder.glob(pattern)}


def system_of(server: LoopbackServer) -> str:
    return json.dumps(server.requests[-1]["system"])


@pytest.mark.worlds
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


@pytest.mark.worlds
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the system shows no command lines there")
@pytest.mark.parametrize("as_text", [False, True])
async def test_secrets_of_mcp_servers_and_settings_are_not_on_the_command_line(
    server: LoopbackServer, options: ClaudeAgentOptions, temporary: Path, as_text: bool
) -> None:
    """SES-91: servers as a dict; or as JSON, and settings with a sandbox, which the SDK would merge."""
    servers: dict[str, McpServerConfig] = {
        "remote": {"type": "http", "url": server.url, "headers": {"Authorization": "Bearer s3cret"}}
    }
    value: Any = json.dumps({"mcpServers": servers}) if as_text else servers
    settings = json.dumps({"env": {"TOKEN": "s3cret"}})
    sandbox: SandboxSettings | None = {"network": {"allowedDomains": ["s3cret.example"]}} if as_text else None
    options = replace(options, mcp_servers=value, settings=settings, sandbox=sandbox)
    async with await Session.open(options) as session:
        assert "s3cret" not in command_line(session)
        assert {mode(file) for file in files(temporary, "cc-session-*/*.json")} == {0o600}
        [file] = files(temporary, "cc-session-*/settings.json")
        assert without_cache(file) == json.loads(settings) | ({} if sandbox is None else {"sandbox": sandbox})
        status = await session.control("mcp_status")
        assert [cast("dict[str, Any]", entry)["name"] for entry in cast("list[Any]", status["mcpServers"])] == [
            "remote"
        ]


def without_cache(file: Path) -> dict[str, Any]:
    """Return settings without the programs' cache, which only systems with `XDG_CACHE_HOME` have."""
    settings = json.loads(file.read_text(encoding="utf-8"))
    env = settings.get("env", {})
    env.pop("XDG_CACHE_HOME", None)
    return {name: value for name, value in settings.items() if value != {}}


def private_settings(settings: str | None, folder: Path) -> Any:
    """Return a process's settings with a sandbox, as the CLI gets them."""
    private = PrivateFolder()
    try:
        options = private.options(ClaudeAgentOptions(settings=settings, sandbox={"enabled": True}, cwd=folder))
        assert options.sandbox is None
        return without_cache(Path(options.settings or ""))
    finally:
        private.remove()


@pytest.mark.parametrize("settings", ["missing.json", '{"broken"', "list.json"])
def test_settings_that_cannot_be_read_are_an_error_and_not_left_out(settings: str, tmp_path: Path) -> None:
    """SES-91: permissions and hooks may be in them."""
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(CLIConnectionError, match=r"settings cannot be read: .*private file"):
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


@pytest.mark.worlds
@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="the CLI logs servers elsewhere there")
@pytest.mark.parametrize("settings", [None, '{"env": {"OTHER": "1"}}', "own.json"])
async def test_mcp_logs_stay_private_and_programs_use_the_user_s_cache(
    server: LoopbackServer, tmp_path: Path, temporary: Path, settings: str | None
) -> None:
    """SES-27: unless settings from a file decide about the variable."""
    env = server.env() | {"HOME": str(tmp_path)}
    cache = f"{tmp_path}/.cache"
    if settings == "own.json":
        settings, cache = f"{tmp_path}/own.json", "/elsewhere"
        (tmp_path / "own.json").write_text('{"env": {"XDG_CACHE_HOME": "/elsewhere"}}')
    stdio: McpServerConfig = {"command": sys.executable, "args": ["-S", STDIO_SERVER]}
    calls = [use(1, "mcp__s__environment"), bash(2, "echo cache is $XDG_CACHE_HOME")]
    server.respond = calling(*calls)
    options = replace(
        sealed_options(env=env),
        tools=["Bash"],
        allowed_tools=["Bash", "mcp__s__environment"],
        max_turns=None,
        mcp_servers={"s": stdio},
        settings=settings,
    )
    async with await Session.open(options) as session:
        await session.wait_mcp()
        await ask(session, "Go.")
        await until(lambda: files(temporary, "cc-session-*/cache/*/*/mcp-logs-s/*"))
        [log] = files(temporary, "cc-session-*/cache/*/*/mcp-logs-s/*")
        assert mode(log.parents[3]) == 0o700

    of_server, of_bash = results_of(server).values()
    assert f";XDG_CACHE_HOME={cache};" in of_server
    assert f"cache is {cache}" in of_bash
    assert not files(tmp_path, ".cache")


@pytest.mark.worlds
async def test_a_key_in_the_user_s_folder_does_not_reach_a_gateway(server: LoopbackServer, tmp_path: Path) -> None:
    """SES-27: the CLI would send it as well."""
    (tmp_path / ".claude.json").write_text('{"primaryApiKey": "sk-ant-s3cret"}')
    env = server.env() | {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "token"}
    del env["CLAUDE_CONFIG_DIR"]
    async with await Session.open(sealed_options(env=env)) as session:
        await ask(session, "Hello.")
    headers = server.calls[-1].headers
    assert headers["authorization"] == "Bearer token"
    assert "s3cret" not in str(headers)


@pytest.mark.worlds
async def test_a_caller_s_folder_is_used_and_stays(
    server: LoopbackServer, options: ClaudeAgentOptions, tmp_path: Path
) -> None:
    """Only the CLI's two short lines remain in the prompt."""
    async with await Session.open(replace(options, system_prompt="", cwd=tmp_path)) as session:
        messages = await ask(session, "Hello.")

    assert len(system_of(server)) < 500
    [init] = [message for message in messages if getattr(message, "subtype", None) == "init"]
    assert cast(Any, init).data["cwd"] == str(tmp_path)
    assert not files(tmp_path)


async def test_without_room_for_a_private_folder_opening_fails(
    options: ClaudeAgentOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(CLIConnectionError, match="private folder for Claude Code cannot be made"):
        await Session.open(options)


def delete_nothing(path: Path, ignore_errors: bool) -> None:
    pass


@pytest.mark.worlds
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


@pytest.mark.worlds
@pytest.mark.parametrize("login", ["api-key", "oauth"])
async def test_no_inherited_variable_changes_a_request(
    login: Literal["api-key", "oauth"], server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-27: neither of a host nor of the user's own sessions; docs/reference/environment.md has all."""
    options = sealed_options(env=server.env(login), model="claude-sonnet-5")
    async with await Session.open(options) as session:
        await ask(session, "Hello.")
    names = (
        "API_KEY_FILE_DESCRIPTOR", "CLIENT_DATA_URL", "CONFIG_PROBE", "CONTAINER_ID", "GATEWAY_HINT_HEADERS",
        "HOST_AUTH_ENV_VAR", "OAUTH_TOKEN_FILE_DESCRIPTOR", "PROVIDER_MANAGED_BY_HOST", "REMOTE", "REMOTE_SESSION_ID",
        "REMOTE_ENVIRONMENT_TYPE", "SIMPLE", "SKILL_PROPOSALS", "USER_DELEGATED_SESSION_DIRECT_API",
        "WEBSEARCH_CITATIONS", "WEBSOCKET_AUTH_FILE_DESCRIPTOR",
    )  # fmt: skip
    for name in names:
        monkeypatch.setenv(f"CLAUDE_CODE_{name}", "1")
    monkeypatch.setenv("NODE_OPTIONS", "--require debugger.js --inspect-publish-uid=http")  # with it the CLI exits
    async with await Session.open(options) as session:
        await ask(session, "Hello.")
    calls = [call for call in server.calls if call.body]
    before, after = (
        (call.headers.keys(), re.sub(r"cc-session-\w+", "", str({**(call.body or {}), "metadata": None})))
        for call in calls
    )
    assert after == before
