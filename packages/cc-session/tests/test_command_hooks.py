"""Hooks that are programs."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from cc_loopback import LoopbackServer
from cc_session import Content, HookResult, Session, command_hook
from cc_session.hooks import Hook

Ask = Callable[[Session, Content], Any]
TOUCH = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "touch file", "description": "d"}}
DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}


def program(code: str) -> list[str]:
    return [sys.executable, "-IS", "-c", f"import json, os, signal, subprocess, sys, time\n{code}"]


async def run(bench: Any, ask: Ask, *hooks: Hook[Any]) -> Any:
    """One turn in which the model runs a command; nothing is said on stderr."""
    lines: list[str] = []
    options = replace(bench.options, permission_mode="bypassPermissions", stderr=lines.append)
    bench.will_call(TOUCH)
    async with await Session.open(options, hooks=hooks) as session, asyncio.timeout(40):
        *_, result = await ask(session, "Go.")
    assert lines == []
    return result


async def test_a_program_gets_the_event_as_json_and_no_shell_is_between(bench: Any, ask: Ask, tmp_path: Path) -> None:
    """SES-43."""
    code = "print(); json.dump([json.load(sys.stdin), os.getcwd(), os.environ['CLAUDE_PROJECT_DIR'], sys.argv[1:]], "
    command = [*program(code + "open(sys.argv[1], 'w'))"), tmp_path / "seen", "$(touch evil); `touch evil`"]

    await run(bench, ask, command_hook("PreToolUse", command, matcher="Bash"))

    event, folder, project, arguments = json.loads((tmp_path / "seen").read_text())
    assert (event["hook_event_name"], event["tool_input"]["command"]) == ("PreToolUse", "touch file")
    assert (folder, project) == (str(bench.folder), str(bench.folder))
    assert arguments[1] == "$(touch evil); `touch evil`"
    assert bench.files == {"file"}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (f"print('''{json.dumps(DENY)}''')", ""),
        ("print(json.dumps({'decision': 'block', 'reason': 'Blocked.'}))", "Blocked."),
        ("sys.exit('not this: exit code 1') if 0 else sys.stderr.write('No way.'); sys.exit(2)", "No way."),
        ("sys.exit(2)", "blocked this"),
    ],
    ids=["a decision", "a block", "exit code 2", "exit code 2 in silence"],
)
async def test_a_program_blocks_a_call(bench: Any, ask: Ask, code: str, words: str) -> None:
    """SES-43."""
    await run(bench, ask, command_hook("PreToolUse", program(code)))
    assert bench.files == set()
    assert words in bench.results["toolu_1"]


@pytest.mark.parametrize(
    "code",
    ["", "print('{}')", "print('Hello.')", "print(json.dumps({'suppressOutput': True}))", "sys.exit(1)",
     "sys.exit('Broken.')", "sys.exit(3)"],
    ids=["nothing", "empty JSON", "text", "JSON that stops nothing", "exit code 1", "with words", "exit code 3"],
)  # fmt: skip
async def test_a_program_that_does_not_say_stop_stops_nothing(bench: Any, ask: Ask, code: str) -> None:
    """SES-43."""
    await run(bench, ask, command_hook("PreToolUse", program(code)))
    assert bench.files == {"file"}


async def test_another_exit_code_is_logged(bench: Any, ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    """SES-43."""
    await run(bench, ask, command_hook("PreToolUse", program("sys.exit('It broke.')")))
    assert "exited with 1: It broke." in caplog.text


async def test_json_changes_the_input(bench: Any, ask: Ask) -> None:
    """SES-42, SES-43."""
    answer = {"hookEventName": "PreToolUse", "updatedInput": {"command": "touch other", "description": "d"}}
    code = f"print({json.dumps(json.dumps({'hookSpecificOutput': answer}))})"
    await run(bench, ask, command_hook("PreToolUse", program(code)))
    assert bench.files == {"other"}


async def test_json_ends_the_turn(bench: Any, ask: Ask) -> None:
    """SES-43: with the field that says so."""
    code = "print(json.dumps({'continue': False, 'stopReason': 'Enough.'}))"
    result = await run(bench, ask, command_hook("PreToolUse", program(code)))
    assert result.terminal_reason == "hook_stopped"


async def test_text_is_told_to_the_model_with_a_prompt(bench: Any, server: LoopbackServer, ask: Ask) -> None:
    """SES-43."""
    await run(bench, ask, command_hook("UserPromptSubmit", program("print('It is late.')")))
    assert "It is late." in str(server.requests[0]["messages"])


FAILING = {
    "no program": ["/nowhere/program"],
    "killed": program("os.kill(os.getpid(), signal.SIGKILL)"),
    "broken JSON": program("print('{bad')"),
    "an unknown field": program("print(json.dumps({'permissionDecision': 'allow'}))"),
    "too much": program("print('x' * 3_000_000)"),
    "too many words": program("sys.stderr.write('x' * 100_000)"),
    "too slow": program("time.sleep(60)"),
    "too slow, deaf": program("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"),
    "too slow, with a child": program("subprocess.Popen(['sleep', '60']); time.sleep(60)"),
    "gone, with a child": program("subprocess.Popen(['sleep', '60'])"),
}


@pytest.mark.parametrize("command", FAILING.values(), ids=FAILING)
async def test_a_program_that_fails_blocks_the_call_and_leaves_nothing(
    bench: Any, ask: Ask, caplog: pytest.LogCaptureFixture, command: list[str]
) -> None:
    """SES-39, SES-40, SES-41: the check for processes that are left is that of every test."""
    began = time.monotonic()
    await run(bench, ask, command_hook("PreToolUse", command, timeout=1.5))

    assert bench.files == set()
    assert "The hook" in bench.results["toolu_1"]
    assert "The hook" in caplog.text
    assert time.monotonic() - began < 40
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "60"] and p.ppid() == 1]


async def test_a_program_can_be_declared_to_let_pass_what_it_fails_about(bench: Any, ask: Ask) -> None:
    """SES-40."""
    await run(bench, ask, command_hook("PreToolUse", ["/nowhere/program"], on_error="continue"))
    assert bench.files == {"file"}


async def test_a_program_need_not_read_what_it_is_told(bench: Any, ask: Ask) -> None:
    TOUCH["input"] = {"command": f"touch file # {'x' * 500_000}", "description": "d"}
    try:
        await run(bench, ask, command_hook("PreToolUse", program("os.close(0); sys.exit(2)")))
    finally:
        TOUCH["input"] = {"command": "touch file", "description": "d"}
    assert bench.files == set()


async def test_an_interrupt_kills_the_program_and_what_it_has_started(bench: Any, ask: Ask, tmp_path: Path) -> None:
    """SES-39."""
    code = f"""
child = subprocess.Popen(["sleep", "600"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
time.sleep(600)
"""
    bench.will_call(TOUCH)
    hooks = [command_hook("PreToolUse", program(code))]
    async with await Session.open(bench.options, hooks=hooks) as session, asyncio.timeout(40):
        asking = ask(session, "Go.")
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        child = int((tmp_path / "pid").read_text())
        await session.interrupt()
        await asking
        while is_running(child):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert bench.files == set()


@pytest.mark.skipif(os.name != "posix", reason="a program is killed alone there")
@pytest.mark.parametrize("turns", range(8))
async def test_a_program_that_is_given_up_while_it_starts_leaves_nothing(tmp_path: Path, turns: int) -> None:
    """SES-39."""
    pid = tmp_path / "pid"
    shell = f"sleep 602 >/dev/null 2>&1 & echo $! >{pid}.part; mv {pid}.part {pid}; wait"
    called = asyncio.ensure_future(cast("Any", command_hook("Stop", ["sh", "-c", shell])({})))
    for _ in range(turns):
        await asyncio.sleep(0)
    time.sleep(0.1)  # noqa: ASYNC251  # the program gets on, and the loop does not

    called.cancel()
    with pytest.raises(asyncio.CancelledError):
        await called

    while pid.exists() and is_running(int(pid.read_text())):  # noqa: ASYNC110  # there is no event for it
        await asyncio.sleep(0.02)


def is_running(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.parametrize("command", [[], [3], [b"true"], ["true", None]])
def test_what_is_no_command_is_refused(command: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        command_hook("PreToolUse", command)


def test_a_shell_line_is_refused() -> None:
    """SES-43: nobody is there to split it."""
    with pytest.raises(TypeError, match="not one text for a shell"):
        command_hook("PreToolUse", "echo hello")


def test_the_definition_is_checked_like_that_of_any_hook() -> None:
    """SES-37, SES-38."""
    with pytest.raises(ValueError, match="no hook event"):
        command_hook("BeforeTool", ["true"])
    with pytest.raises(ValueError, match="nothing that a matcher could match"):
        command_hook("Stop", ["true"], matcher="x")
    assert repr(command_hook("Stop", ["/bin/true"])) == "<Hook true on Stop matcher=None>"
    assert command_hook("Stop", ["true"]).timeout == 60
    assert HookResult.no_opinion() == HookResult()
    assert os.name != "posix" or signal.SIGKILL
