"""Shared fixtures: a CLI on the loopback API, stand-ins for malformed behaviour, and a check for leftovers."""

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions, Message, PermissionMode

from cc_loopback import JsonObject, LoopbackServer, Reply
from cc_session import Content, Policy, PoolLimits, Session, SessionPool, Timeouts, TurnError, sealed_options
from cc_session.internals import run_on_background

T = TypeVar("T")
FakeCLI: TypeAlias = Callable[[str], ClaudeAgentOptions]

# The stand-ins use only the standard library, so that they start fast.
FAKE_CLI = """#!{python} -IS
import json, os, signal, sys, time
"--version" in sys.argv and sys.exit(print("2.1.329 (Claude Code)"))
def send(**frame):
    print(json.dumps(frame), flush=True)

def answer(request, **response):
    send(type="control_response", response={{"subtype": "success", "request_id": request["request_id"], **response}})

def frames():
    for line in sys.stdin:
        yield json.loads(line)

def initialize():
    answer(json.loads(sys.stdin.readline()), response={{}})

def result(frame, **fields):
    send(type="result", subtype="success", duration_ms=1, duration_api_ms=1, is_error=False, num_turns=1,
         session_id="s", user_message_uuid=frame["uuid"], **fields)

{body}
"""

STDIO_SERVER = str(Path(__file__).parent / "stdio_server.py")
SHARED = frozenset({"lone_pool", "shared_bash", "shared_pool"})  # fixtures for processes that tests share


def ask(session: Session, content: Content) -> "asyncio.Task[list[Message]]":
    """Ask in a new task, which returns all messages."""

    async def messages() -> list[Message]:
        try:
            return [*(await session.run(content)).messages]
        except TurnError as error:
            return [*error.turn.messages]

    return asyncio.ensure_future(messages())


async def until(condition: Callable[[], object], pause: float = 0.01) -> None:
    """Wait for something that sends no event."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(pause)


async def cancelled(task: "asyncio.Future[Any]") -> None:
    """Cancel a task, and wait until it is."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def all_raise(
    error: type[Exception] | tuple[type[Exception], ...], *calls: Awaitable[object], match: str | None = None
) -> None:
    """Expect an error from each call, in sequence."""
    for call in calls:
        with pytest.raises(error, match=match):
            await call


def say(output: Any) -> Callable[[Any], Any]:
    """Make a model, or a hook, with the same output for any input."""
    return lambda _input: output


def echo(body: JsonObject) -> str:
    """Answer with the last prompt."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else content[-1]["text"]


def use(number: int | str, name: str, **arguments: Any) -> dict[str, Any]:
    """A model's tool call."""
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}


def bash(number: int | str, command: str) -> dict[str, Any]:
    return use(number, "Bash", command=command, description="d")


def calling(*calls: dict[str, Any]) -> Callable[[JsonObject], Reply]:
    """Make a model that sends these calls in a message after each prompt, and ends the turn after their results."""

    def respond(body: JsonObject) -> Reply:
        return "Done." if not calls or "tool_result" in json.dumps(body["messages"][-1]) else [*calls]

    return respond


def results_of(server: LoopbackServer) -> dict[str, str]:
    """Return the call results that the model received, by id."""
    blocks: list[Any] = [
        block
        for body in server.requests
        for message in body["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"  # pyright: ignore[reportUnknownVariableType]
    ]
    return {block["tool_use_id"]: json.dumps(block["content"]) for block in blocks}


def is_alive(process: psutil.Process | int) -> bool:
    """Return true if it runs. A process whose parent has ended may stay unreaped."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(process) if isinstance(process, int) else process
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def folders_in(temporary: Path) -> list[Path]:
    return [*temporary.glob("cc-session-*")]


class SlowAPI:
    """A responder that never answers, and reports when it was asked."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    async def __call__(self, _body: dict[str, Any]) -> str:
        self._asked.set()
        await asyncio.Event().wait()  # until the client goes away
        return ""

    async def wait_for_prompt(self) -> None:
        assert await asyncio.to_thread(self._asked.wait, 10)
        self._asked.clear()

    async def during(self, call: Awaitable[T]) -> "asyncio.Future[T]":
        """Start a call, and return the task when the API's model works for it."""
        task = asyncio.ensure_future(call)
        await self.wait_for_prompt()
        return task


class Workbench:
    """A working folder, Claude Code's tools, and a model that makes the given calls, once."""

    def __init__(self, server: LoopbackServer, options: ClaudeAgentOptions, folder: Path) -> None:
        self.folder = folder
        # Not shared, since tests write settings there.
        config = folder.parent / f"{folder.name}-config"
        config.mkdir(mode=0o700)
        self.options = replace(
            options,
            env={**options.env, "CLAUDE_CONFIG_DIR": str(config)},
            tools=["Agent", "Bash", "Edit", "Read", "Skill", "Write"],  # a start with all takes three times as long
            cwd=folder,
            max_turns=None,
            permission_mode="default",
        )
        self._server = server
        self._messages: list[list[dict[str, Any]]] = []
        self.begin()

    def begin(self) -> None:
        """Empty the folder, for the module's next test, and be the model from here on."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._server.respond = self._respond

    def will_call(self, *calls: dict[str, Any], then: Sequence[dict[str, Any]] = ()) -> None:
        """Give the next message these calls, and the message after it, such as a sub-agent's, the calls in `then`."""
        self._messages = [[*calls], [*then]]

    def _respond(self, body: dict[str, Any]) -> Any:
        has_results = any("tool_result" in json.dumps(message) for message in body["messages"][-1:])
        return (self._messages.pop(0) if self._messages and not has_results else None) or "Done."

    @property
    def results(self) -> dict[str, str]:
        return results_of(self._server)

    async def run(
        self, policy: Policy | None = None, mode: PermissionMode = "default", changes: Any = None, **kwargs: Any
    ) -> list[str]:
        """Run one turn in a new process, with changed options; return the stderr lines."""
        lines: list[str] = []
        options = replace(self.options, permission_mode=mode, stderr=lines.append, **(changes or {}))
        async with await Session.open(options, policy=policy, **kwargs) as session, asyncio.timeout(40):
            await ask(session, "Go.")
        return lines

    @property
    def files(self) -> set[str]:
        """The files in the folder, but for those that a test has planted below `.claude`."""
        files = (path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file())
        return {str(path) for path in files if path.parts[0] != ".claude"}


@pytest.fixture
def bench(server: LoopbackServer, options: ClaudeAgentOptions, tmp_path: Path) -> Workbench:
    folder = tmp_path / "work"
    folder.mkdir()
    return Workbench(server, options, folder)


@pytest.fixture(scope="module")
def module_bench(worker_api: LoopbackServer, tmp_path_factory: pytest.TempPathFactory) -> Workbench:
    """A workbench for a process that a module's tests share. Each test takes `server`, and begins anew."""
    return Workbench(worker_api, sealed(worker_api), tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="session")
def shared_pool(worker_api: LoopbackServer) -> Iterator[SessionPool]:
    """The processes that a worker's tests share. Each lease has an empty conversation."""
    # On a busy machine an abandoned turn may take its time, and is to be ended, not discarded.
    with SessionPool(sealed(worker_api), limits=PoolLimits(size=2, prewarm=0), timeouts=Timeouts(close=10)) as pool:
        yield pool


@pytest.fixture(scope="session")
def lone_pool(worker_api: LoopbackServer) -> Iterator[SessionPool]:
    """A pool with a single process that tests share, so that each lease gets this process."""
    with SessionPool(sealed(worker_api), limits=PoolLimits(size=1, prewarm=0)) as pool:
        yield pool


@pytest.fixture(scope="session")
def shared_bash(worker_api: LoopbackServer) -> Iterator[Session]:
    """A session that tests share whose model may call the Bash tool. Tests take `bash_session`."""
    options = replace(sealed(worker_api), tools=["Bash"], allowed_tools=["Bash"], max_turns=None)
    session = run_on_background(Session.open, options)
    yield session
    run_on_background(session.close)


@pytest.fixture(autouse=True)
def temporary(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files. After each test it is empty, and the test's processes have ended.

    Shared processes outlive the test, and their folders are elsewhere: there, the pool must become idle.
    """
    if shared := SHARED.intersection(request.fixturenames):
        yield Path(tempfile.gettempdir())
        for name in shared - {"shared_bash"}:
            wait_for_rest(request.getfixturevalue(name))
        return
    request.getfixturevalue("tmp_path_factory").getbasetemp()  # not in this folder
    before = {*psutil.Process().children(recursive=True)}
    # Not below `tmp_path`, which is too long for a socket path.
    folder = Path(tempfile.mkdtemp(prefix="t-"))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    _, alive = psutil.wait_procs({*psutil.Process().children(recursive=True)} - before, timeout=5)
    leftovers = [*folder.iterdir()]
    shutil.rmtree(folder)
    assert (alive, leftovers) == ([], []), "processes or files are leftovers"


def process_of(session: Session) -> psutil.Process:
    assert session.pid is not None
    return psutil.Process(session.pid)


def wait_for_rest(pool: SessionPool) -> None:
    """Wait until a pool has no leased process, and none in a reset."""
    deadline = time.monotonic() + 20
    while (stats := pool.stats()).busy or stats.resetting or stats.starting:
        assert time.monotonic() < deadline, f"not at rest: {pool}"
        time.sleep(0.002)


@pytest.fixture
async def one_process(server: LoopbackServer, lone_pool: SessionPool) -> AsyncIterator[SessionPool]:
    """The pool with a single process, shared by the whole test and the tests after it."""
    await lone_pool.warm(1)
    before = lone_pool.stats()
    yield lone_pool
    wait_for_rest(lone_pool)
    after = lone_pool.stats()
    assert (after.starts, after.recycled) == (before.starts, before.recycled)


@pytest.fixture
def server(shared_api: LoopbackServer) -> LoopbackServer:
    """The worker's loopback API, reset."""
    return shared_api


def sealed(api: LoopbackServer) -> ClaudeAgentOptions:
    return sealed_options(system_prompt="You are a test.", model="claude-sonnet-5", env=api.env())


@pytest.fixture
def options(server: LoopbackServer) -> ClaudeAgentOptions:
    return sealed(server)


@pytest.fixture
async def session(server: LoopbackServer, shared_pool: SessionPool) -> AsyncIterator[Session]:
    """A session in a shared process, with an empty conversation."""
    async with shared_pool.lease() as session:
        yield session


@pytest.fixture
async def bash_session(server: LoopbackServer, shared_bash: Session) -> AsyncIterator[Session]:
    """A session that tests share whose model may call the Bash tool, with an empty conversation."""
    yield shared_bash
    await shared_bash.reset()


@pytest.fixture
async def own_session(temporary: Path, options: ClaudeAgentOptions) -> AsyncIterator[Session]:
    """A session in a process that no other test uses: for tests that count from the start, or end it."""
    async with await Session.open(options) as session:
        yield session


@pytest.fixture
def slow_api(server: LoopbackServer) -> SlowAPI:
    """Make the API stop answering."""
    server.respond = slow_api = SlowAPI()
    return slow_api


@pytest.fixture
def calls_bash(server: LoopbackServer) -> Callable[..., None]:
    """Makes a model that runs a command with the Bash tool once per prompt, and then says that it is done."""

    def make(command: str, **fields: JsonObject) -> None:
        def respond(body: JsonObject) -> Reply:
            calls = [{"type": "text", "text": "I shall call a tool."}, bash(len(server.requests), command)]
            is_done = "tool_result" in json.dumps(body["messages"][-1])
            return {"content": [{"type": "text", "text": "Done."}] if is_done else calls, **fields}

        server.respond = respond

    return make


@pytest.fixture
def fake_cli(tmp_path: Path) -> FakeCLI:
    """Makes the options for a process that is not the CLI, but a program with this body."""

    def make(body: str) -> ClaudeAgentOptions:
        program = tmp_path / "fake-claude"
        program.write_text(FAKE_CLI.format(python=sys.executable, body=body))
        program.chmod(0o700)
        return ClaudeAgentOptions(cli_path=program)

    return make


@pytest.fixture
def children(temporary: Path) -> Callable[[], list[psutil.Process]]:
    """Finds the processes started by this process since the test began."""
    before = {*psutil.Process().children()}
    return lambda: [child for child in psutil.Process().children() if child not in before]


@pytest.fixture
def processes(children: Callable[[], list[psutil.Process]]) -> Callable[[], list[psutil.Process]]:
    """Finds these processes without watchdogs. Some may have ended during the search."""

    def find() -> list[psutil.Process]:
        processes: list[psutil.Process] = []
        for child in children():
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.name() != "sh":
                    processes.append(child)
        return processes

    return find


@pytest.fixture
def echoes(server: LoopbackServer) -> None:
    server.respond = echo
