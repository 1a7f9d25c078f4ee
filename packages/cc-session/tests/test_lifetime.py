"""Sessions and their Python process: threads, loops, forks, and an end that no CLI survives.

Over 400 lines, and in one file: the scripts of most tests are forks from the same interpreter.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import JsonObject, LoopbackServer, Reply
from cc_session import Session, SessionPool, Timeouts
from cc_types import ClaudeCodeError

from .conftest import bash, calling, echo, folders_in, is_alive, process_of, until

pytestmark = pytest.mark.deaths

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)

CallsBash = Callable[..., None]

# An interpreter that has all imports done, and forks for each script, which saves it a second. The scripts open a
# session, print its process id, and continue as the test wants; they end as every interpreter does.
NURSERY = """
import asyncio, json, os, sys, tempfile, time
from cc_session import Session, sealed_options
from cc_types import ClaudeCodeError

async def opened():
    session = await Session.open(options)
    print(session.pid, flush=True)
    return session

async def answer(session, text):
    return (await session.run(text)).text

for line in sys.stdin:
    body, env, files = json.loads(line)
    if (pid := os.fork()) == 0:
        break
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
else:
    os._exit(0)
for number, file in enumerate(files):
    os.dup2(os.open(file, os.O_RDWR), number)
os.environ["TMPDIR"], tempfile.tempdir = env.pop("TMPDIR"), None
options = sealed_options(env=env)
exec(body)
"""


class Script:
    """A running script, and the CLI that it has started."""

    def __init__(self, body: str, server: LoopbackServer, nursery: "subprocess.Popen[str]", folder: Path) -> None:
        self._nursery = nursery
        self.stdout, self.stderr = folder / "stdout", folder / "stderr"
        files = [os.devnull, *map(str, (self.stdout, self.stderr))]
        self.stdout.touch()
        self.stderr.touch()
        env = {**server.env(), "TMPDIR": os.environ["TMPDIR"]}
        assert nursery.stdin is not None
        print(json.dumps([body, env, files]), file=nursery.stdin, flush=True)
        self.pid = self._told()
        self.returncode: int | None = None
        self.cli = psutil.Process(self.number(0))
        self.guards = [child for child in psutil.Process(self.pid).children() if child.name() == "sh"]

    def _told(self) -> int:
        assert self._nursery.stdout is not None
        return int(self._nursery.stdout.readline())

    def number(self, index: int) -> int:
        """Return a number that stands alone on a line of the script's output, present or coming."""
        deadline = time.monotonic() + 20
        while len(lines := self.stdout.read_text().split("\n")) < index + 2:
            assert time.monotonic() < deadline, self.stderr.read_text()
            time.sleep(0.002)
        return int(lines[index])

    def end(self) -> tuple[str, str]:
        """Wait until all processes have ended; return the output after the first line."""
        self.returncode = self._told()
        deadline = time.monotonic() + 20
        while any(is_alive(process) for process in (self.cli, *self.guards)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return self.stdout.read_text().partition("\n")[2], self.stderr.read_text()


Run = Callable[[str], Script]


@pytest.fixture(scope="session")
def nursery() -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", NURSERY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:
        yield nursery


@pytest.fixture
def run(nursery: "subprocess.Popen[str]", server: LoopbackServer, tmp_path: Path) -> Iterator[Run]:
    scripts: list[Script] = []

    def start(body: str) -> Script:
        scripts.append(Script(body, server, nursery, tmp_path))
        return scripts[-1]

    yield start
    for script in scripts:
        if script.returncode is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                python = psutil.Process(script.pid)
                for process in (*python.children(recursive=True), python):
                    process.kill()
            script.end()


def test_the_process_ends_with_a_script_that_simply_ends(run: Run) -> None:
    """SES-77."""
    script = run("asyncio.run(opened())")
    assert script.end() == ("", "")
    assert script.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_the_process_ends_with_a_script_that_is_ended_in_a_turn(
    run: Run, slow_api: Any, number: signal.Signals, temporary: Path
) -> None:
    """SES-77: the CLI alone would end the turn first, which has no end here."""
    script = await asyncio.to_thread(run, "session = asyncio.run(opened())\nasyncio.run(answer(session, 'Hello.'))")
    await slow_api.wait_for_prompt()

    os.kill(script.pid, number)

    await asyncio.to_thread(script.end)
    assert folders_in(temporary) == []


def test_a_forked_child_opens_sessions_and_leaves_the_parent_s_alone(run: Run) -> None:
    """SES-74: nor does the child's end, or a close in it, end the parent's."""
    script = run("""
session = asyncio.run(opened())

async def child():
    for call in (session.control("get_settings"), answer(session, "Hello."), session.interrupt()):
        try:
            await call
        except ClaudeCodeError as error:
            print(error.reason)
    await session.close()
    async with await Session.open(options) as own:
        assert (await answer(own, "Hello.")).startswith("You said")

if (pid := os.fork()) == 0:
    asyncio.run(child())
    sys.exit(5)
print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(asyncio.run(answer(session, "Hello.")))
asyncio.run(session.close())
""")
    stdout, _ = script.end()
    refused = "The session belongs to the process that this process was forked from"
    assert stdout.splitlines() == [refused] * 3 + ["child 5", 'You said: "Hello.".']


def test_a_parent_s_death_is_noticed_although_a_forked_child_lives(run: Run) -> None:
    """SES-77: the child has copies of the parent's pipes."""
    script = run("""
session = asyncio.run(opened())
if (pid := os.fork()) == 0:
    os.close(1), os.close(2)
    time.sleep(60)
print(pid, flush=True)
time.sleep(60)
""")
    child = script.number(1)
    os.kill(script.pid, signal.SIGKILL)
    try:
        script.end()
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no process groups")
async def test_a_terminal_s_signals_reach_no_process(shared_pool: SessionPool) -> None:
    """SES-77: they go to Python's whole process group, as from a notebook that interrupts a cell."""
    async with shared_pool.lease() as session:
        assert session.pid is not None
        assert os.getpgid(session.pid) == session.pid


# --- No CLI, tool or server is left ---

# A tool, a tool that ignores a signal and has a daemon beside it, and a tool's child.
COMMANDS = {
    "tool": "sleep 601",
    "stubborn": "trap '' TERM INT HUP; (setsid sleep 602 >/dev/null 2>&1 &); sleep 603",
    "clean": "env -i /bin/sh -c '/bin/sleep 604; true'",
}


def process_tree(folder: str, cli: psutil.Process) -> list[psutil.Process]:
    """The CLI's process tree, by another search than the package's."""
    tree = {cli, *cli.children(recursive=True)}
    for process in psutil.process_iter():
        try:
            if process.environ().get("CC_SESSION_FOLDER") == folder:
                tree.add(process)
        except psutil.Error:
            pass
    return [*tree]


def names(processes: list[psutil.Process]) -> list[str]:
    running: list[str] = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # ended since the check
            if is_alive(process):
                running.append(process.name())
    return running


async def gone(processes: list[psutil.Process], *folders: str) -> list[str]:
    """Wait until all have ended; return the names of remaining processes."""
    deadline = time.monotonic() + 15
    while leftovers := names(processes) + [folder for folder in folders if os.path.exists(folder)]:  # noqa: ASYNC240
        if time.monotonic() > deadline:
            return leftovers
        await anyio.sleep(0.02)
    return []


async def started(cli: psutil.Process, name: str) -> list[psutil.Process]:
    """Wait for a process with this name in a CLI's tree; return the tree."""
    folder = cli.environ()["CC_SESSION_FOLDER"]
    await until(lambda: name in names(process_tree(folder, cli)), pause=0.02)
    return process_tree(folder, cli)


# Ends of Python by a signal, to the process or to the group; SIGUSR1 makes it call `os._exit`.
ENDS = {
    "SIGKILL": (os.kill, signal.SIGKILL),
    "SIGTERM": (os.kill, signal.SIGTERM),
    "os._exit": (os.kill, signal.SIGUSR1),
    "SIGKILL of its group": (os.killpg, signal.SIGKILL),
}
# Has a session for each of some words, and runs them.
DYING = """
import signal
from dataclasses import replace

async def main():
    bash = replace(options, tools=["Bash"], allowed_tools=["Bash"], max_turns=None)
    sessions = await asyncio.gather(*(Session.open(bash) for _ in words))
    print(*(session.pid for session in sessions), sep="\\n", flush=True)
    pairs = zip(sessions, words)
    running = [asyncio.ensure_future(session.run(word)) for session, word in pairs if word != "idle"]
    await asyncio.Event().wait()

os.setsid()
signal.signal(signal.SIGUSR1, lambda *_: os._exit(3))
asyncio.run(main())
"""


@pytest.mark.parametrize("end", ["SIGKILL", *(pytest.param(end, marks=pytest.mark.slow) for end in [*ENDS][1:])])
async def test_when_python_dies_nothing_outlives_it(server: LoopbackServer, run: Run, end: str) -> None:
    """SES-77: nor a tool that ignores signals, detached from the parents, or has another environment."""
    words = ["idle", "turn", "tool", *(["stubborn", "clean", "stopped"] if end == "SIGKILL" else [])]
    in_turn = threading.Event()

    async def respond(body: JsonObject) -> Reply:
        # A CLI that lives when the tool ends makes another request, with the prompt as plain text.
        word = echo({"messages": body["messages"][:1]})
        if word == "turn":
            in_turn.set()
            await asyncio.Event().wait()  # until the client goes away
        return [bash(1, COMMANDS.get(word, COMMANDS["tool"]))]

    server.respond = respond
    script = await asyncio.to_thread(run, f"words = {words}\n{DYING}")
    clis = {word: psutil.Process(script.number(index)) for index, word in enumerate(words)}
    await until(in_turn.is_set)
    folders = {word: cli.environ()["CC_SESSION_FOLDER"] for word, cli in clis.items()}
    processes = {
        word: await started(cli, cli.name() if word in ("idle", "turn") else "sleep") for word, cli in clis.items()
    }
    if "stopped" in clis:
        clis["stopped"].suspend()

    send, number = ENDS[end]
    send(script.pid, number)

    await asyncio.to_thread(script.end)
    leftovers = {word: await gone(processes[word], folders[word]) for word in words}
    assert not any(leftovers.values()), leftovers


# It detaches from parents, environment and output, and writes down the process id.
DETACHED = "(env -i setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 607' </dev/null >/dev/null 2>&1 &)"


@pytest.mark.skipif(sys.platform != "linux", reason="the system shows no trace of it")
async def test_a_process_without_parents_and_environment_does_not_outlive_python(
    server: LoopbackServer, run: Run, tmp_path: Path
) -> None:
    """SES-77."""
    file = tmp_path / "pid"
    server.respond = calling(bash(1, DETACHED.format(file)))
    script = await asyncio.to_thread(run, f"words = ['tool']\n{DYING}")
    await until(file.exists)
    os.kill(script.pid, signal.SIGKILL)
    assert await gone([psutil.Process(int(file.read_text()))]) == []


async def test_the_watchdog_has_no_secret_of_the_environment(
    options: ClaudeAgentOptions, children: Callable[[], list[psutil.Process]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-77."""
    monkeypatch.setenv("KEY", "s3cret")
    async with await Session.open(options):
        [guard] = [child for child in children() if child.name() == "sh"]
        assert guard.environ().keys() == {"PATH"}


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
    """SES-23: and the model gets no message about it."""
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
    """SES-20: without `close()`."""
    calls_bash(COMMANDS["tool"])
    running, processes = await in_tool(session)

    process_of(session).kill()

    with pytest.raises(ClaudeCodeError):
        await running
    assert await gone(processes) == []
    assert session.state == "dead"
