"""The server, tested by peers that write raw bytes."""

import asyncio
import json
import logging
import os
import random
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from cc_ipc import MAX_MESSAGE_SIZE, SOCKET_PERMISSIONS, IPCServer, ToolHandler
from cc_ipc import server as server_module
from cc_ipc.errors import SessionStateError, SocketPathError

from .conftest import Connect, RawPeer, Tools, call, happens, text

FUZZ_FRAMES = int(os.environ.get("CC_IPC_FUZZ_FRAMES", "1000"))


@pytest.fixture
async def server(tools: Tools, folder: Path) -> AsyncIterator[IPCServer]:
    async with IPCServer(folder / "s.sock", tools.handlers) as server:
        yield server


@pytest.fixture
async def peer(server: IPCServer, raw_peer: Connect) -> RawPeer:
    return await raw_peer(server.socket_path)


async def test_calls_one_after_another_on_a_connection_are_answered_with_their_results(peer: RawPeer) -> None:
    """IPC-P-01, IPC-R-03, IPC-P-10, IPC-P-11, IPC-P-04, IPC-P-05."""
    for number in range(3):
        arguments = {"city": "Zürich", "n": number}
        response = await peer.request(call("echo", arguments))
        assert response == {"result": {**text(json.dumps(arguments)), "isError": False}}


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("second", [json.dumps(call("echo")).encode(), b"nonsense"], ids=["a request", "nonsense"])
async def test_a_request_before_the_last_response_ends_the_connection(
    tools: Tools, peer: RawPeer, second: bytes, is_late: bool
) -> None:
    """IPC-P-05: two outstanding requests on one connection break the protocol."""
    peer.send(call("wait"))
    if is_late:
        await happens(tools.started)
    peer.send(second)
    assert await peer.is_ended()
    await happens(tools.cancelled)
    assert tools.calls == []


Serve: TypeAlias = Callable[[ToolHandler], Awaitable[tuple[IPCServer, RawPeer]]]
UNKNOWN_TOOL = "The tool 'nope' is not known. Known tools: echo, fail, meet, wait."


@pytest.mark.parametrize(
    ("payload", "kind", "message"),
    [
        (b'{"method": "list_tools", "params": {}}', "UnknownMethodError", ""),
        (json.dumps(call("nope")).encode(), "ToolNotFoundError", UNKNOWN_TOOL),
        (b"nonsense", "InvalidPayloadError", ""),
    ],
)
async def test_an_invalid_request_is_answered_and_the_connection_stays_open(
    peer: RawPeer, payload: bytes, kind: str, message: str
) -> None:
    """IPC-P-E03, IPC-P-E04, IPC-P-E05, IPC-D-06, IPC-P-18."""
    peer.send(payload)
    response = await peer.receive()
    assert response["error"]["type"] == kind
    assert message in response["error"]["message"]
    assert "result" not in response  # IPC-D-15
    assert "result" in await peer.request(call("echo"))


async def test_a_request_larger_than_allowed_is_answered_and_the_connection_ends(peer: RawPeer) -> None:
    """IPC-P-03."""
    peer.writer.write((MAX_MESSAGE_SIZE + 1).to_bytes(4, "big"))
    assert (await peer.receive())["error"]["type"] == "RemoteMessageSizeError"
    assert await peer.is_ended()


async def test_random_and_mutated_frames_leave_the_server_serving_others(
    server: IPCServer, raw_peer: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """IPC-P-09."""
    caplog.set_level(logging.CRITICAL)
    chance = random.Random(9)
    good = json.dumps(call("echo", {"a": "é"})).encode()
    for _ in range(FUZZ_FRAMES // 20):
        peer = await raw_peer(server.socket_path)
        for _ in range(20):
            payload = bytearray(good if chance.random() < 0.7 else chance.randbytes(chance.randint(0, 40)))
            for _ in range(chance.randint(0, 3) if payload else 0):
                payload[chance.randrange(len(payload))] = chance.randrange(256)
            size = len(payload) if chance.random() < 0.9 else chance.getrandbits(32)
            peer.writer.write(size.to_bytes(4, "big") + payload)
        await peer.close()
    assert "result" in await (await raw_peer(server.socket_path)).request(call("echo"))


async def test_the_socket_is_private_and_removed_with_the_server(server: IPCServer) -> None:
    """IPC-D-27, IPC-D-33."""
    assert server.socket_path.stat().st_mode == stat.S_IFSOCK | SOCKET_PERMISSIONS == stat.S_IFSOCK | 0o600
    assert server.is_serving
    assert "serving, 0 connections" in repr(server)
    for _ in range(2):
        await server.stop()
        assert not server.socket_path.exists()
    assert not server.is_serving
    assert "not serving" in repr(server)


async def test_stopping_answers_the_running_calls(server: IPCServer, tools: Tools, peer: RawPeer) -> None:
    peer.send(call("wait"))
    await happens(tools.started)
    await server.stop()
    assert (await peer.receive())["error"]["type"] == "CancelledError"
    assert await peer.is_ended()


@pytest.fixture
async def serve(folder: Path, raw_peer: Connect) -> Serve:
    """Start a server with a single tool, which the test stops, and return a peer."""

    async def start(handler: ToolHandler) -> tuple[IPCServer, RawPeer]:
        server = IPCServer(folder / "s", {"tool": handler})
        await server.start()
        return server, await raw_peer(server.socket_path)

    return start


async def test_a_handler_that_ignores_its_cancellation_is_left_running(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_module, "_HANDLER_STOP_TIMEOUT", 0.01)
    started, go_on = asyncio.Event(), asyncio.Event()

    async def handler(arguments: dict[str, object]) -> dict[str, object]:
        started.set()
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        return {"content": []}

    server, peer = await serve(handler)
    peer.send(call("tool"))
    await happens(started)
    await server.stop()
    assert "left running" in caplog.text
    assert await peer.is_ended()
    go_on.set()


async def test_a_stopping_server_starts_no_calls(folder: Path, raw_peer: Connect, tools: Tools) -> None:
    stopping, go_on = asyncio.Event(), asyncio.Event()

    async def slow(arguments: dict[str, object]) -> dict[str, object]:
        try:
            await asyncio.Event().wait()
        finally:
            stopping.set()
            await go_on.wait()
        return {"content": []}

    server = IPCServer(folder / "s", {**tools.handlers, "slow": slow})
    await server.start()
    busy, other = [await raw_peer(server.socket_path) for _ in range(2)]
    await other.request(call("echo"))
    busy.send(call("slow"))
    assert "result" in await other.request(call("echo"))  # so the slow handler runs
    stop = asyncio.ensure_future(server.stop())
    await stopping.wait()
    assert (await other.request(call("echo")))["error"]["type"] == "SessionStateError"
    go_on.set()
    await stop
    assert len(tools.calls) == 2


async def test_the_connection_of_a_peer_that_does_not_read_is_aborted(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_FLUSH_TIMEOUT", 0.01)
    answered = asyncio.Event()

    async def handler(arguments: dict[str, object]) -> dict[str, object]:
        answered.set()
        return text("a" * 5_000_000)

    server, peer = await serve(handler)
    peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
    peer.send(call("tool"))
    await happens(answered)
    await server.stop()
    assert not server.socket_path.exists()


async def test_a_running_server_does_not_start_again_or_lose_the_socket(server: IPCServer, peer: RawPeer) -> None:
    """IPC-D-30."""
    with pytest.raises(SessionStateError):
        await server.start()
    with pytest.raises(SocketPathError):
        await IPCServer(server.socket_path, {}).start()
    assert "result" in await peer.request(call("echo"))


async def test_another_file_at_the_path_is_not_removed(server: IPCServer) -> None:
    server.socket_path.unlink()
    server.socket_path.write_text("foreign", encoding="utf-8")
    await server.stop()
    assert server.socket_path.exists()
