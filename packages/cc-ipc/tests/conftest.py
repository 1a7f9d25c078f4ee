"""Fixtures and helpers: a private folder with a short path, tools, raw peers and parents, and child processes."""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_ipc import IPCSession, ToolHandler, ToolSchema

Json: TypeAlias = Any
"""A JSON value that a test indexes into."""

LIMIT = 10.0
"""Seconds until a wait fails. All waits here normally take milliseconds."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A private folder with a path short enough for sockets; pytest's own is not."""
    path = Path(tempfile.mkdtemp(prefix="ipc"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def at_end(folder: Path) -> Iterator[contextlib.ExitStack]:
    """Resources to close when a test ends, before the folder is removed."""
    with contextlib.ExitStack() as stack:
        yield stack


def text(value: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": value}]}


RESULT = b'{"result":{"content":[{"type":"text","text":"ok"}]}}'
"""A parent's response."""


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def call(name: str, arguments: object = None, **params: object) -> dict[str, object]:
    """A request to a server."""
    return {"method": "call_tool", "params": {"name": name, "arguments": arguments or {}, **params}}


def mcp(method: str, params: object = None, **fields: object) -> dict[str, object]:
    """A message to a bridge: a notification, or with an `id` a request."""
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {}), **fields}


def mcp_call(request_id: int | str, name: str, arguments: object = None) -> dict[str, object]:
    return mcp("tools/call", {"name": name, "arguments": arguments or {}}, id=request_id)


def is_never_own(sock: object) -> bool:
    return False


def raising(error: BaseException) -> Callable[..., Any]:
    """Return a function that raises, as a replacement in `monkeypatch`."""

    def fail(*arguments: object, **options: object) -> None:
        raise error

    return fail


async def happens(event: asyncio.Event) -> None:
    async with asyncio.timeout(LIMIT):
        await event.wait()


class Tools:
    """Handlers for the tests, which record calls."""

    def __init__(self) -> None:
        self.calls: list[dict[str, object]] = []
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.go_on = asyncio.Event()
        self.waiting = 0

    @property
    def handlers(self) -> dict[str, ToolHandler]:
        return {name: getattr(self, name) for name in ("echo", "fail", "wait", "meet")}

    @property
    def schemas(self) -> list[ToolSchema]:
        return [
            {"name": name, "description": f"To {name}.", "input_schema": {"type": "object"}} for name in self.handlers
        ]

    async def echo(self, arguments: dict[str, object]) -> dict[str, object]:
        self.calls.append(arguments)
        return text(json.dumps(arguments))

    async def fail(self, arguments: dict[str, object]) -> dict[str, object]:
        raise ValueError("no such city")

    async def wait(self, arguments: dict[str, object]) -> dict[str, object]:
        self.started.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return text("done")

    async def meet(self, arguments: dict[str, object]) -> dict[str, object]:
        """Return when `parties` calls have arrived."""
        self.waiting += 1
        if self.waiting >= int(str(arguments["parties"])):
            self.go_on.set()
        await self.go_on.wait()
        return text("met")


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
async def session(tools: Tools, folder: Path) -> AsyncIterator[IPCSession]:
    async with IPCSession(tools.handlers, tools.schemas, folder=folder) as started:
        yield started


class RawPeer:
    """A peer that writes and reads frames without the package's code."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, message: Json) -> None:
        """Send a message, or raw bytes as a payload."""
        self.writer.write(frame(message if isinstance(message, bytes) else json.dumps(message).encode()))

    async def receive(self) -> Json:
        async with asyncio.timeout(LIMIT):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return json.loads(await self.reader.readexactly(size))

    async def request(self, message: Json) -> Json:
        self.send(message)
        return await self.receive()

    async def is_ended(self) -> bool:
        """Wait until the connection ends; return false if data arrives instead."""
        try:
            async with asyncio.timeout(LIMIT):
                return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


Connect: TypeAlias = Callable[[Path], Awaitable[RawPeer]]


@pytest.fixture
async def raw_peer() -> AsyncIterator[Connect]:
    async with contextlib.AsyncExitStack() as stack:

        async def connect(path: Path) -> RawPeer:
            assert sys.platform != "win32"
            peer = RawPeer(*await asyncio.open_unix_connection(path))
            stack.push_async_callback(peer.close)
            return peer

        yield connect


class ChildProcess:
    """A program with pipes for input and output."""

    def __init__(self, command: list[str], **options: Any) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def wait(self, seconds: float = LIMIT) -> int:
        return self.process.wait(seconds)

    def kill(self) -> None:
        self.process.kill()
        self.wait()

    def close(self) -> None:
        self.kill()
        for pipe in filter(None, (self.stdin, self.stdout, self.process.stderr)):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


StartChild: TypeAlias = Callable[..., ChildProcess]


@pytest.fixture
def child_process(at_end: contextlib.ExitStack) -> StartChild:
    def start(command: list[str], **options: Any) -> ChildProcess:
        return at_end.enter_context(contextlib.closing(ChildProcess(command, **options)))

    return start


class BridgeProcess(ChildProcess):
    """A bridge as a child process, with JSON-RPC over pipes."""

    def __init__(self, command: list[str], **options: Any) -> None:
        super().__init__(command, stderr=subprocess.PIPE, **options)

    def send(self, *messages: Json) -> None:
        for message in messages:
            self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def read(self) -> Json:
        line = self.stdout.readline()
        return json.loads(line) if line else None

    def request(self, method: str, params: Json = None, request_id: int | str = 1) -> Json:
        self.send(mcp(method, params, id=request_id))
        return self.read()

    async def call(self, name: str, arguments: Json = None, request_id: int | str = 1) -> Json:
        """Call a tool in this process without blocking the event loop."""
        self.send(mcp_call(request_id, name, arguments))
        async with asyncio.timeout(LIMIT):
            return await asyncio.to_thread(self.read)

    def stderr(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()


StartBridge: TypeAlias = Callable[..., BridgeProcess]


@pytest.fixture
def bridge_process(at_end: contextlib.ExitStack) -> StartBridge:
    def start(command: list[str], **options: Any) -> BridgeProcess:
        return at_end.enter_context(contextlib.closing(BridgeProcess(command, **options)))

    return start


OWNER = """
import asyncio, json, os, sys
from cc_ipc import IPCSession

async def echo(arguments):
    return {"content": [{"type": "text", "text": json.dumps(arguments)}]}

async def wait(arguments):
    await asyncio.Event().wait()

def schema(name):
    return {"name": name, "description": "", "input_schema": {"type": "object"}}

async def main():
    async with IPCSession({"echo": echo, "wait": wait}, [schema("echo"), schema("wait")]) as session:
        print(json.dumps(session.command), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

asyncio.run(main())
"""


class OwnerProcess(ChildProcess):
    """Another process with a session, whose temporary folder is `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__([sys.executable, "-c", OWNER], env={**os.environ, "TMPDIR": str(folder)})
        self.command: list[str] = json.loads(self.stdout.readline())
        self.socket_path, self.schema_path = map(Path, self.command[-2:])


StartOwner: TypeAlias = Callable[[], OwnerProcess]


@pytest.fixture
def owner_process(folder: Path, at_end: contextlib.ExitStack) -> StartOwner:
    return lambda: at_end.enter_context(contextlib.closing(OwnerProcess(folder)))


Answer: TypeAlias = Callable[[bytes], bytes | None] | bytes | None


def unix_socket() -> socket.socket:
    assert sys.platform != "win32"
    return socket.socket(socket.AF_UNIX)


@contextlib.contextmanager
def full_queue(path: Path) -> Generator[socket.socket]:
    """A listening socket on Linux whose queue has two connections and no room for a third."""
    with unix_socket() as listener, unix_socket() as first, unix_socket() as second:
        listener.bind(str(path))
        listener.listen(1)
        for peer in (first, second):
            peer.connect(str(path))
        yield listener


class FakeParent:
    """A server in a thread that sends a fixed or computed answer to each request."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self._answer = answer
        self._listener = unix_socket()
        self._listener.bind(str(path))
        self._listener.listen()
        self.connections = 0
        self.requests: list[bytes] = []
        self.hangs_up = False
        """True if a connection ends after the first answer."""
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: Any) -> None:
        with connection, connection.makefile("rb") as stream:
            while header := stream.read(4):
                payload = stream.read(int.from_bytes(header, "big"))
                self.requests.append(payload)
                answer = self._answer(payload) if callable(self._answer) else self._answer
                if answer is None:
                    return
                connection.sendall(answer)
                if self.hangs_up:
                    return

    def close(self) -> None:
        # A thread in `accept` keeps the socket open; this wakes it up.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(LIMIT)
        self._listener.close()


StartParent: TypeAlias = Callable[[Answer], tuple[Path, FakeParent]]


@pytest.fixture
def fake_parent(folder: Path, at_end: contextlib.ExitStack) -> StartParent:
    def start(answer: Answer) -> tuple[Path, FakeParent]:
        path = folder / "parent.sock"
        return path, at_end.enter_context(contextlib.closing(FakeParent(path, answer)))

    return start
