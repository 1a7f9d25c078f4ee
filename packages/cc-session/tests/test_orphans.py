"""When Python dies, or a session is closed, nothing that was started for it lives on: no CLI, no tool, no server."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import anyio
import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions, McpServerConfig

from cc_loopback import LoopbackServer
from cc_session import Session
from cc_types import ClaudeCodeError

CallsBash = Callable[..., None]


def at_most(seconds: float) -> float:
    """A time that is promised, or more on a machine that has more to do than it can."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


SCRIPT = """
import asyncio, json, os, sys
from dataclasses import replace
from cc_session import Session, sealed_options

async def main():
    options = sealed_options(env=json.loads(sys.argv[1]))
    options = replace(options, tools=["Bash"], allowed_tools=["Bash"], max_turns=None)
    session = await Session.open(options)
    print(session.pid, flush=True)
    running = asyncio.ensure_future(session.run("Go.")) if sys.argv[2] == "run" else None
    await asyncio.to_thread(sys.stdin.readline)
    os._exit(3)

asyncio.run(main())
"""

# A tool, one that does not heed a signal and has a daemon beside it, and one that is another's child.
COMMANDS = {
    "tool": "sleep 601",
    "stubborn": "trap '' TERM INT HUP; (setsid sleep 602 >/dev/null 2>&1 &); sleep 603",
    "clean": "env -i /bin/sh -c '/bin/sleep 604; true'",
}


def family(folder: str, cli: psutil.Process) -> list[psutil.Process]:
    """The CLI and all that it has started, found in another way than the package finds them."""
    found = {cli, *cli.children(recursive=True)}
    for process in psutil.process_iter():
        try:
            if process.environ().get("CC_SESSION_FOLDER") == folder:
                found.add(process)
        except psutil.Error:
            pass
    return [*found]


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def names(processes: list[psutil.Process]) -> list[str]:
    return [process.name() for process in processes if is_alive(process)]


async def gone(processes: list[psutil.Process], *folders: str) -> list[str]:
    """Wait until all have gone; return the names of those that have not in time."""
    deadline = time.monotonic() + at_most(3)
    while left := names(processes) + [folder for folder in folders if os.path.exists(folder)]:  # noqa: ASYNC240
        if time.monotonic() > deadline:
            return left
        await anyio.sleep(0.02)
    return []


class Script:
    """A Python process with a session in it."""

    def __init__(self, server: LoopbackServer, what: str) -> None:
        command = [sys.executable, "-c", SCRIPT, json.dumps(server.env()), what]
        self.python = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def wait(self) -> None:
        """Wait until the session is open."""
        assert self.python.stdout is not None
        self.cli = psutil.Process(int(self.python.stdout.readline()))
        self.folder = self.cli.environ()["CC_SESSION_FOLDER"]

    async def started(self, name: str) -> list[psutil.Process]:
        """Wait for a process of this name; return all of them."""
        with anyio.fail_after(30):
            while name not in names(processes := family(self.folder, self.cli)):  # noqa: ASYNC110
                await anyio.sleep(0.02)
        return processes

    def exit(self) -> None:
        assert self.python.stdin is not None
        self.python.stdin.write("\n")
        self.python.stdin.flush()


@pytest.fixture
def script(server: LoopbackServer) -> Iterator[Callable[[str], Script]]:
    scripts: list[Script] = []

    def start(what: str) -> Script:
        scripts.append(Script(server, what))
        scripts[-1].wait()
        return scripts[-1]

    yield start
    for script in scripts:
        script.python.kill()
        script.python.communicate()


ENDS: dict[str, Callable[[Script], None]] = {
    "SIGKILL": lambda script: script.python.kill(),
    "SIGTERM": lambda script: script.python.terminate(),
    "os._exit": Script.exit,
    "SIGKILL of its group": lambda script: os.killpg(script.python.pid, signal.SIGKILL),
}


@pytest.mark.parametrize("end", [*ENDS])
@pytest.mark.parametrize("what", ["idle", "turn", "tool"])
async def test_when_python_dies_nothing_outlives_it(
    script: Callable[[str], Script], held: Any, calls_bash: CallsBash, end: str, what: str
) -> None:
    """SES-77, SES-F19."""
    if what == "tool":
        calls_bash(COMMANDS["tool"])
    running = await asyncio.to_thread(script, "idle" if what == "idle" else "run")
    if what == "turn":
        await held.asked()
    processes = await running.started("sleep" if what == "tool" else running.cli.name())

    ENDS[end](running)

    assert await gone(processes, running.folder) == []


@pytest.mark.parametrize("command", ["stubborn", "clean"])
async def test_a_tool_that_hides_does_not_outlive_python(
    script: Callable[[str], Script], calls_bash: CallsBash, command: str
) -> None:
    """SES-77: one that does not heed signals, has left its parents, or has another environment."""
    calls_bash(COMMANDS[command])
    running = await asyncio.to_thread(script, "run")
    processes = await running.started("sleep")

    running.python.kill()

    assert await gone(processes, running.folder) == []


async def test_a_process_that_is_stopped_does_not_outlive_python(
    script: Callable[[str], Script], calls_bash: CallsBash
) -> None:
    """SES-77."""
    calls_bash(COMMANDS["tool"])
    running = await asyncio.to_thread(script, "run")
    processes = await running.started("sleep")
    running.cli.suspend()

    running.python.kill()

    assert await gone(processes, running.folder) == []


@pytest.fixture
async def session(options: ClaudeAgentOptions) -> AsyncIterator[Session]:
    options = replace(options, tools=["Bash"], allowed_tools=["Bash"], max_turns=None)
    async with await Session.open(options) as session:
        yield session


async def in_tool(session: Session) -> "tuple[asyncio.Task[Any], list[psutil.Process]]":
    running = asyncio.ensure_future(session.run("Go."))
    cli = psutil.Process(session.pid)
    folder = cli.environ()["CC_SESSION_FOLDER"]
    with anyio.fail_after(30):
        while "sleep" not in names(processes := family(folder, cli)):  # noqa: ASYNC110
            await anyio.sleep(0.02)
    return running, processes


@pytest.mark.parametrize("command", [*COMMANDS])
async def test_close_in_a_tool_is_quick_and_leaves_nothing(
    server: LoopbackServer, session: Session, calls_bash: CallsBash, command: str
) -> None:
    """SES-23, SES-F20: and the model does not hear of it."""
    calls_bash(COMMANDS[command])
    running, processes = await in_tool(session)
    began = time.monotonic()

    await session.close()

    assert time.monotonic() - began < at_most(1.5)
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
    """SES-20: although nobody closes the session."""
    calls_bash(COMMANDS["tool"])
    running, processes = await in_tool(session)

    os.kill(session.pid or 0, signal.SIGKILL)

    with pytest.raises(ClaudeCodeError):
        await running
    assert await gone(processes) == []
    assert session.state == "dead"


# Answers what the CLI asks at the start, and neither the end of its stdin nor a signal ends it.
SERVER = """
import json, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
for line in sys.stdin:
    request = json.loads(line)
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": {"tools": []},
    }
    if request.get("method") in results:
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": results[request["method"]]}
    elif "id" in request:
        answer = {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}}
    else:
        continue
    print(json.dumps(answer), flush=True)
time.sleep(600)
"""


async def test_an_mcp_server_that_does_not_end_is_ended(options: ClaudeAgentOptions) -> None:
    """SES-23, SES-77."""
    servers: dict[str, McpServerConfig] = {"s": {"type": "stdio", "command": sys.executable, "args": ["-ISc", SERVER]}}
    async with await Session.open(replace(options, mcp_servers=servers)) as session:
        await session.run("Hello?")  # it has been started by then
        cli = psutil.Process(session.pid)
        processes = family(cli.environ()["CC_SESSION_FOLDER"], cli)
        assert len(processes) > 1

        with anyio.fail_after(at_most(3)):
            await session.close()

        assert names(processes) == []
