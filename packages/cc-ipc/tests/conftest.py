"""What the tests share: a short private folder, tools to call, raw peers, and bridges as child processes."""

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
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_ipc import IPCSession, ToolHandler, ToolSchema

Json: TypeAlias = Any
"""A JSON value that a test indexes into."""

LIMIT = 10.0
"""Seconds after which a test gives up waiting. Everything that is waited for here takes milliseconds."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A private folder with a path short enough for sockets; pytest's own is not."""
    path = Path(tempfile.mkdtemp(prefix="ipc"))
    yield path
    shutil.rmtree(path)


def text(value: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": value}]}


class Tools:
    """Handlers for the tests, and what became of their calls."""

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
        """Return when as many calls as asked for are here."""
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
    """A peer that writes and reads frames byte by byte, by no code of the package."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, payload: bytes) -> None:
        self.writer.write(len(payload).to_bytes(4, "big") + payload)

    async def receive(self) -> Json:
        async with asyncio.timeout(LIMIT):
            size = int.from_bytes(await self.reader.readexactly(4), "big")
            return json.loads(await self.reader.readexactly(size))

    async def request(self, message: Json) -> Json:
        self.send(json.dumps(message).encode())
        return await self.receive()

    async def is_ended(self) -> bool:
        """Wait for the end of the connection; False if something comes instead."""
        try:
            async with asyncio.timeout(LIMIT):
                return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


@pytest.fixture
async def raw_peer() -> AsyncIterator[Callable[[Path], Any]]:
    peers: list[RawPeer] = []

    async def connect(path: Path) -> RawPeer:
        peers.append(RawPeer(*await asyncio.open_unix_connection(path)))
        return peers[-1]

    yield connect
    for peer in peers:
        await peer.close()


class BridgeProcess:
    """A bridge as a child process, spoken to in JSON-RPC."""

    def __init__(self, command: list[str], **options: Any) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )

    def send(self, *messages: Json) -> None:
        assert self.process.stdin is not None
        for message in messages:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> Json:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def request(self, method: str, params: Json = None, request_id: int | str = 1) -> Json:
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}})
        return self.read()

    async def call(self, name: str, arguments: Json = None, request_id: int | str = 1, **params: Json) -> Json:
        """Call a tool of this process, whose loop goes on meanwhile."""
        params = {"name": name, "arguments": arguments or {}, **params}
        async with asyncio.timeout(LIMIT):
            return await asyncio.to_thread(self.request, "tools/call", params, request_id)

    async def read_async(self) -> Json:
        async with asyncio.timeout(LIMIT):
            return await asyncio.to_thread(self.read)

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self, seconds: float = LIMIT) -> int:
        return self.process.wait(seconds)

    def stderr(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def close(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


@pytest.fixture
def bridge_process() -> Iterator[Callable[..., BridgeProcess]]:
    processes: list[BridgeProcess] = []

    def start(command: list[str], **options: Any) -> BridgeProcess:
        processes.append(BridgeProcess(command, **options))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


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


class OwnerProcess:
    """Another process with a session of its own, whose temporary folder is `folder`."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWNER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        assert self.process.stdout is not None
        self.command: list[str] = json.loads(self.process.stdout.readline())
        self.socket_path, self.schema_path = map(Path, self.command[-2:])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT)

    def close(self) -> None:
        self.kill()
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def owner_process(folder: Path) -> Iterator[Callable[[], OwnerProcess]]:
    processes: list[OwnerProcess] = []

    def start() -> OwnerProcess:
        processes.append(OwnerProcess(folder))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


class FakeParent:
    """A server of one connection after another, in a thread, which answers each frame as a function says."""

    def __init__(self, path: Path, answer: Callable[[bytes], bytes | None]) -> None:
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self.connections = 0
        self.hangs_up = False
        """Whether a connection ends after its first answer."""
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
                answer = self._answer(stream.read(int.from_bytes(header, "big")))
                if answer is None:
                    return
                connection.sendall(answer)
                if self.hangs_up:
                    return

    def close(self) -> None:
        # A thread in `accept` keeps the socket open; this wakes it.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(LIMIT)
        self._listener.close()


@pytest.fixture
def fake_parent(folder: Path) -> Iterator[Callable[[Callable[[bytes], bytes | None]], Any]]:
    parents: list[FakeParent] = []

    def start(answer: Callable[[bytes], bytes | None]) -> tuple[Path, FakeParent]:
        path = folder / f"parent{len(parents)}.sock"
        parents.append(FakeParent(path, answer))
        return path, parents[-1]

    yield start
    for parent in parents:
        parent.close()
