"""Claude Code's sandbox for commands, by a policy."""

import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from claude_agent_sdk import ClaudeAgentOptions, SandboxSettings

from cc_loopback import JsonObject, LoopbackServer
from cc_session import Policy, Sandbox, Session
from cc_session.policy.sandbox import check_sandbox, sandbox_settings
from cc_types import CLIConnectionError


def has_sandbox() -> bool:
    try:
        check_sandbox("/usr/local/bin:/usr/bin:/bin")
    except CLIConnectionError:
        return False
    return True


def settings(**fields: Any) -> SandboxSettings:
    return cast("SandboxSettings", fields)


def test_the_default_closes_the_home_folder_and_the_network(tmp_path: Path) -> None:
    """SES-138."""
    made: dict[str, Any] = {**sandbox_settings(settings(), tmp_path)}
    assert made["filesystem"] == {"denyRead": [str(Path.home())], "allowRead": [str(tmp_path)]}
    assert made["network"] == {"allowedDomains": []}
    assert (made["enabled"], made["failIfUnavailable"], made["allowUnsandboxedCommands"]) == (True, True, False)


def test_settings_replace_those_of_the_default_but_never_turn_the_sandbox_off(tmp_path: Path) -> None:
    """SES-138."""
    given = settings(enabled=False, failIfUnavailable=False, network={}, filesystem={"allowRead": ["/data"]})
    made: dict[str, Any] = {**sandbox_settings(given, tmp_path)}
    assert (made["enabled"], made["failIfUnavailable"], made["network"]) == (True, True, {})
    assert made["filesystem"] == {"denyRead": [str(Path.home())], "allowRead": ["/data"]}


def test_with_rules_keeps_the_sandbox_and_commands_are_allowed_in_it(tmp_path: Path) -> None:
    policy = Policy.workspace_write(tmp_path, sandbox=True)
    assert policy.verdict("Bash", {"command": "ls"}).behavior == "allow"
    assert policy.with_rules().sandbox == policy.sandbox
    assert Policy.workspace_write(tmp_path).verdict("Bash", {"command": "ls"}).behavior == "deny"
    own: Any = Policy.workspace_write(tmp_path, sandbox=settings(network={})).sandbox
    assert own == {"network": {}, "filesystem": {"allowWrite": [str(tmp_path)], "allowRead": [str(tmp_path)]}}
    more: Any = Policy.workspace_write(tmp_path, sandbox=settings(filesystem={"allowWrite": ["/data"]})).sandbox
    assert more["filesystem"] == {"allowWrite": [str(tmp_path), "/data"], "allowRead": [str(tmp_path)]}


@pytest.mark.parametrize("sandbox", [True, settings()], ids=["default", "empty settings"])
@pytest.mark.parametrize(
    ("system", "message"), [("linux", "needs bwrap and socat"), ("win32", "no sandbox on Windows")]
)
async def test_a_session_without_a_sandbox_for_it_does_not_start(
    options: ClaudeAgentOptions, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox, system: str, message: str
) -> None:
    """SES-138: whatever the CLI would do."""
    monkeypatch.setattr(sys, "platform", system)
    options = replace(options, env={**options.env, "PATH": "/nowhere"})
    with pytest.raises(CLIConnectionError, match=message):
        await Session.open(options, policy=Policy(sandbox=sandbox))


def call_of_the_prompt(body: Any) -> str | list[JsonObject]:
    """Run the last prompt in Bash, and answer with its output. The CLI may add reminders below it."""
    for message in reversed(body["messages"]):
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_result":
                return str(block["content"])
            if block["type"] == "text" and block["text"].startswith("("):
                arguments = {"command": block["text"].splitlines()[0], "description": "Try."}
                identity = f"toolu_{len(body['messages'])}"
                return [{"type": "tool_use", "id": identity, "name": "Bash", "input": arguments}]
    raise AssertionError("no prompt")


@pytest.mark.worlds
@pytest.mark.skipif(not has_sandbox(), reason="this system has no sandbox")
async def test_commands_write_in_the_workspace_alone_and_read_no_home_and_reach_nothing(
    server: LoopbackServer, options: ClaudeAgentOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-138: tried by commands of a real shell."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (home / "key").write_text("a secret", encoding="utf-8")
    monkeypatch.setenv("HOME", str(home))
    server.respond = call_of_the_prompt
    options = replace(options, cwd=work, tools=["Bash"], max_turns=None)
    policy = Policy.workspace_write(work, sandbox=True)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        async with await Session.open(options, policy=policy) as session:

            async def answer(command: str) -> str:
                return (await session.run(f"({command}) 2>&1; echo code $?")).text

            assert "code 0" in await answer("echo inside > file && cat file")
            assert "a secret" not in await answer(f"cat {home}/key")
            for place in (home / "new", tmp_path / "new", Path("/etc/new")):
                await answer(f"echo outside > {place}")
                assert not place.exists()
            reached = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"
            assert "reached" not in await answer(reached)
            assert "reached" not in await answer("timeout 5 bash -c 'exec 3<>/dev/tcp/192.0.2.1/80' && echo reached")
    assert (work / "file").read_text("utf-8") == "inside\n"
