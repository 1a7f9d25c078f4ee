"""The startup check for a bridge."""

import asyncio
import sys
from typing import Any

import pytest

from cc_ipc import BridgeStartupError, IPCSession, check_bridge, probe

from .conftest import LIMIT, Tools


async def test_a_bridge_that_starts_lists_its_tools(session: IPCSession, tools: Tools) -> None:
    assert await check_bridge(session.command) == list(tools.handlers)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (["/nowhere/python"], "cannot be started"),
        ([sys.executable, "-c", "import sys; sys.exit('no such module')"], "ended with status 1"),
        ([sys.executable, "-c", "print('hello')"], "did not list its tools"),
        ([sys.executable, "-c", "print('[]')"], "did not list its tools"),
        ([sys.executable, "-c", "print('{\"result\": 1}')"], "did not list its tools"),
        ([sys.executable, "-c", "print('{\"result\": {}}')"], "did not list its tools"),
    ],
    ids=["no program", "an exit", "no JSON", "no object", "no result", "no tools"],
)
async def test_a_bridge_that_does_not_start_is_an_error_with_the_cause(command: list[str], reason: str) -> None:
    """IPC-D-43."""
    with pytest.raises(BridgeStartupError, match=reason) as caught:
        await check_bridge(command)
    assert list(caught.value.command) == command
    assert ("no such module" in caught.value.stderr_tail) == ("status 1" in reason)


async def test_a_bridge_that_does_not_answer_is_killed_and_its_stderr_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """IPC-D-43."""
    start = asyncio.create_subprocess_exec

    async def start_and_wait(*command: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*command, **options)
        assert process.stdout is not None
        async with asyncio.timeout(LIMIT):
            assert await process.stdout.readline() == b"Ready\n"
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_and_wait)
    monkeypatch.setattr(probe, "_ANSWER_TIMEOUT", 0.01)
    program = "import os, time; os.write(2, b'Waiting for a mount'); os.write(1, b'Ready\\n'); time.sleep(60)"
    with pytest.raises(BridgeStartupError, match=r"did not answer within 0\.01 seconds") as caught:
        await check_bridge([sys.executable, "-S", "-c", program])
    assert caught.value.stderr_tail == "Waiting for a mount"
