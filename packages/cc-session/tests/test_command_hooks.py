"""Hooks that are programs."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from cc_session import HookResult, Session, command_hook
from cc_session.hooks.calls import CallbackRunner, for_the_cli

from .conftest import ask, bash, cancelled, is_alive, until

# A sleep time that identifies this worker's processes.
SLEEP = ["sleep", f"60.{os.getpid()}"]
DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}


def program(code: str) -> list[str]:
    return [sys.executable, "-IS", "-c", f"import json, os, signal, subprocess, sys, time\n{code}"]


def touch(file: str) -> dict[str, Any]:
    return bash(file, f"touch {file}")


async def output_of(command: Sequence[Any], event: str = "PreToolUse", **kwargs: Any) -> Any:
    """Return the CLI's message when a program is called, and the model's message where it denies."""
    [answer] = for_the_cli(command_hook(event, command, **kwargs), CallbackRunner(None)).hooks
    output: Any = await answer({"command": "touch file"}, "toolu_1", {"signal": None})  # pyright: ignore[reportArgumentType]
    specific = output.get("hookSpecificOutput", {})
    return specific.get("permissionDecisionReason", "") if specific.get("permissionDecision") == "deny" else output


BLOCKING = {
    "a decision": (f"print('{json.dumps(DENY)}')", ""),
    "exit code 2": ("sys.stderr.write('No way.'); sys.exit(2)", "No way."),
    "exit code 2 in silence": ("sys.exit(2)", "blocked this"),
}
PASSING = {
    "nothing": "",
    "empty JSON": "print('{}')",
    "text": "print('Hello.')",
    "exit code 1": "sys.exit(1)",
    "with words": "sys.exit('It broke.')",
    "exit code 3": "sys.exit(3)",
}
FAILING = {
    "no program": ["/nowhere/program"],
    "killed": program("os.kill(os.getpid(), signal.SIGKILL)"),
    "broken JSON": program("print('{bad')"),
    "an unknown field": program("print(json.dumps({'permissionDecision': 'allow'}))"),
    "too much": program("print('x' * 3_000_000)"),
    "too many words": program("sys.stderr.write('x' * 100_000)"),
    "too slow": program("time.sleep(60)"),
    "too slow, deaf": program("signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"),
    "too slow, with a child": program(f"subprocess.Popen({SLEEP}); time.sleep(60)"),
    "gone, with a child": program(f"subprocess.Popen({SLEEP})"),
}


async def test_a_program_blocks_a_call_or_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """SES-43: an unknown exit code is logged."""
    for case, (code, words) in BLOCKING.items():
        answer = await output_of(program(code))
        assert isinstance(answer, str), case
        assert words in answer, case
    for case, code in PASSING.items():
        caplog.clear()
        assert await output_of(program(code)) == {}, case
        assert ("exited with" in caplog.text) == ("exit(" in code), case
    assert "exited with 3" in caplog.text
    assert await output_of(program(PASSING["with words"])) == {}
    assert "exited with 1: It broke." in caplog.text


@pytest.mark.worlds
async def test_a_failing_program_blocks_the_call_unless_declared_otherwise_and_leaves_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """SES-39, SES-40, SES-41: child processes end, too."""
    answers = await asyncio.gather(*(output_of(command, timeout=1.5) for command in FAILING.values()))

    for case, command, answer in zip(FAILING, FAILING.values(), answers, strict=True):
        assert f"The hook {Path(command[0]).name} " in answer, case
        assert isinstance(answer, str), case
    assert caplog.text.count("The hook") == len(FAILING)
    for case in ("too much", "too many words"):
        assert "raised CommandFailedError" in answers[[*FAILING].index(case)], case
    await until(lambda: SLEEP not in [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])])
    assert await output_of(["/nowhere/program"], on_error="continue") == {}


@pytest.mark.deaths
async def test_an_interrupt_kills_the_program_and_what_it_has_started(bench: Any, tmp_path: Path) -> None:
    """SES-39."""
    pid = tmp_path / "pid"
    code = f"""
child = subprocess.Popen(["sleep", "600"])
open({str(pid)!r}, "w").write(str(child.pid))
time.sleep(600)
"""
    bench.will_call(touch("file"))
    hooks = [command_hook("PreToolUse", program(code))]
    async with await Session.open(bench.options, hooks=hooks) as session, asyncio.timeout(40):
        asking = ask(session, "Go.")
        await until(lambda: pid.exists() and pid.read_text())
        await session.interrupt()
        await asking
        await until(lambda: not is_alive(int(pid.read_text())))
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
    time.sleep(0.1)  # noqa: ASYNC251  # the program continues, and the loop does not

    await cancelled(called)
    await until(lambda: not pid.exists() or not is_alive(int(pid.read_text())))


@pytest.mark.parametrize(
    ("command", "words"),
    [([], None), ([3], None), ([b"true"], None), (["true", None], None), ("echo hello", "not a text for a shell")],
    ids=str,
)
def test_an_invalid_command_is_refused(command: Any, words: str | None) -> None:
    """SES-43: no shell splits a line."""
    with pytest.raises((ValueError, TypeError), match=words):
        command_hook("PreToolUse", command)


def test_the_definition_is_checked_like_that_of_any_hook() -> None:
    """SES-37, SES-38."""
    with pytest.raises(ValueError, match="no hook event"):
        command_hook("BeforeTool", ["true"])
    with pytest.raises(ValueError, match="nothing that a matcher could match"):
        command_hook("Stop", ["true"], matcher="x")
    assert repr(command_hook("Stop", ["/bin/true"])) == "<Hook true on Stop matcher=None>"
    assert command_hook("Stop", ["true"]).timeout == 60
    assert HookResult.no_opinion() == HookResult()
