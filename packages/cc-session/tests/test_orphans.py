"""No process survives Python's death or the close of its session: no CLI, no tool, no server."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import anyio
import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import JsonObject, LoopbackServer, Reply
from cc_session import Session, StdioServer, Timeouts
from cc_types import ClaudeCodeError

from .conftest import STDIO_SERVER, is_alive, process_of, until

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)

CallsBash = Callable[..., None]


SCRIPT = """
import asyncio, json, os, sys
from dataclasses import replace
from pathlib import Path
from cc_session import Session, sealed_options

async def main():
    env, prompts = json.loads(sys.argv[1]), sys.argv[2:]
    options = replace(sealed_options(env=env), tools=["Bash"], allowed_tools=["Bash"], max_turns=None)
    sessions = await asyncio.gather(*(Session.open(options) for _ in prompts))
    print(json.dumps([session.pid for session in sessions]), flush=True)
    pairs = zip(sessions, prompts)
    running = [asyncio.ensure_future(session.run(prompt)) for session, prompt in pairs if prompt != "idle"]
    await asyncio.to_thread(sys.stdin.readline)
    os._exit(3)

asyncio.run(main())
"""

# A tool, one that ignores a signal and has a daemon beside it, and one that is another's child.
COMMANDS = {
    "tool": "sleep 601",
    "stubborn": "trap '' TERM INT HUP; (setsid sleep 602 >/dev/null 2>&1 &); sleep 603",
    "clean": "env -i /bin/sh -c '/bin/sleep 604; true'",
}


def family(folder: str, cli: psutil.Process) -> list[psutil.Process]:
    """The CLI and its process tree, found in another way than the package finds them."""
    found = {cli, *cli.children(recursive=True)}
    for process in psutil.process_iter():
        try:
            if process.environ().get("CC_SESSION_FOLDER") == folder:
                found.add(process)
        except psutil.Error:
            pass
    return [*found]


def names(processes: list[psutil.Process]) -> list[str]:
    return [process.name() for process in processes if is_alive(process)]


async def gone(processes: list[psutil.Process], *folders: str) -> list[str]:
    """Wait until all have ended; return the names of the remaining ones."""
    deadline = time.monotonic() + 15
    while left := names(processes) + [folder for folder in folders if os.path.exists(folder)]:  # noqa: ASYNC240
        if time.monotonic() > deadline:
            return left
        await anyio.sleep(0.02)
    return []


async def started(cli: psutil.Process, name: str) -> list[psutil.Process]:
    """Wait for a process of this name among those of a CLI; return all of them."""
    folder = cli.environ()["CC_SESSION_FOLDER"]
    await until(lambda: name in names(family(folder, cli)), pause=0.02)
    return family(folder, cli)


ENDS: dict[str, Callable[["subprocess.Popen[str]"], object]] = {
    "SIGKILL": lambda python: python.kill(),
    "SIGTERM": lambda python: python.terminate(),
    "os._exit": lambda python: python.communicate("\n"),
    "SIGKILL of its group": lambda python: os.killpg(python.pid, signal.SIGKILL),
}


@pytest.fixture
def script(server: LoopbackServer) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts Python processes that have a session for each of these words."""
    scripts: list[subprocess.Popen[str]] = []

    def start(*words: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", SCRIPT, json.dumps(server.env()), *words]
        python = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        scripts.append(python)
        return python

    yield start
    for python in scripts:
        python.kill()
        python.communicate()


@pytest.mark.parametrize("end", ["SIGKILL", *(pytest.param(end, marks=pytest.mark.slow) for end in [*ENDS][1:])])
async def test_when_python_dies_nothing_outlives_it(
    server: LoopbackServer, script: Callable[..., "subprocess.Popen[str]"], end: str
) -> None:
    """SES-77, SES-F19: nor a tool that ignores signals, has left its parents, or has another environment."""
    words = ["idle", "turn", "tool", *(["stubborn", "clean", "stopped"] if end == "SIGKILL" else [])]
    in_turn = threading.Event()

    async def respond(body: JsonObject) -> Reply:
        word = body["messages"][0]["content"][-1]["text"]
        if word == "turn":
            in_turn.set()
            await asyncio.Event().wait()  # until the client goes away
        call = {"type": "tool_use", "id": "toolu_1", "name": "Bash"}
        return [call | {"input": {"command": COMMANDS.get(word, COMMANDS["tool"])}}]

    server.respond = respond
    python = script(*words)
    assert python.stdout is not None
    line = await asyncio.to_thread(python.stdout.readline)
    clis = dict(zip(words, map(psutil.Process, json.loads(line)), strict=True))
    await until(in_turn.is_set)
    folders = {word: cli.environ()["CC_SESSION_FOLDER"] for word, cli in clis.items()}
    processes = {
        word: await started(cli, cli.name() if word in ("idle", "turn") else "sleep") for word, cli in clis.items()
    }
    if "stopped" in clis:
        clis["stopped"].suspend()

    ENDS[end](python)

    left = {word: await gone(processes[word], folders[word]) for word in words}
    assert not any(left.values()), left


@pytest.fixture
async def session(options: ClaudeAgentOptions) -> AsyncIterator[Session]:
    options = replace(options, tools=["Bash"], allowed_tools=["Bash"], max_turns=None)
    # Waits bounded only by the time for closing would take longer than a test does.
    async with await Session.open(options, timeouts=Timeouts(close=30)) as session:
        yield session


async def in_tool(session: Session) -> "tuple[asyncio.Task[Any], list[psutil.Process]]":
    running = asyncio.ensure_future(session.run("Go."))
    return running, await started(psutil.Process(session.pid), "sleep")


@pytest.mark.parametrize("command", [*COMMANDS])
async def test_close_in_a_tool_is_quick_and_leaves_nothing(
    server: LoopbackServer, session: Session, calls_bash: CallsBash, command: str
) -> None:
    """SES-23, SES-F20: and the model gets no message about it."""
    calls_bash(COMMANDS[command])
    running, processes = await in_tool(session)

    with anyio.fail_after(10):
        await session.close()

    assert names(processes) == []
    with pytest.raises(ClaudeCodeError, match="The session is closed"):
        await running
    assert len(server.requests) == 1


async def test_what_a_tool_leaves_running_ends_with_the_session(session: Session, calls_bash: CallsBash) -> None:
    """SES-23: between turns, too."""
    calls_bash("(setsid sleep 605 >/dev/null 2>&1 &); nohup sleep 606 >/dev/null 2>&1 &")
    running, processes = await in_tool(session)
    await running
    assert "sleep" in names(processes)

    await session.close()

    assert names(processes) == []


async def test_a_process_that_died_leaves_no_tools(session: Session, calls_bash: CallsBash) -> None:
    """SES-20: without a close of the session."""
    calls_bash(COMMANDS["tool"])
    running, processes = await in_tool(session)

    process_of(session).kill()

    with pytest.raises(ClaudeCodeError):
        await running
    assert await gone(processes) == []
    assert session.state == "dead"


async def test_an_mcp_server_that_does_not_end_is_ended(options: ClaudeAgentOptions) -> None:
    """SES-23, SES-77."""
    stubborn = StdioServer(sys.executable, ["-S", STDIO_SERVER], {"STUBBORN": "1"})
    async with await Session.open(options, mcp_servers={"s": stubborn}) as session:
        cli = psutil.Process(session.pid)
        processes = family(cli.environ()["CC_SESSION_FOLDER"], cli)
        assert len(processes) > 1

        with anyio.fail_after(10):
            await session.close()

        assert names(processes) == []
