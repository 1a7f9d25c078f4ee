"""The server, as peers meet it that write their own bytes."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import os
import random
import stat
from typing import TYPE_CHECKING, Any

import pytest

from cc_ipc import (
    MAX_MESSAGE_SIZE,
    SOCKET_PERMISSIONS,
    IPCServer,
    SessionStateError,
    SocketPathError,
    ToolCall,
    ToolHandler,
    current_call,
)
from cc_ipc import server as server_module

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from conftest import RawPeer, Tools

    Connect = Callable[[Path], Awaitable[RawPeer]]

FUZZ_FRAMES = int(os.environ.get("CC_IPC_FUZZ_FRAMES", "1000"))
LIMIT = 10.0


def call(name: str, arguments: object = None, **params: object) -> dict[str, object]:
    return {"method": "call_tool", "params": {"name": name, "arguments": arguments or {}, **params}}


async def answer_of(handler: ToolHandler, path: Path, connect: Connect, timeout: float | None = None) -> Any:  # noqa: ASYNC109
    """Return the response to one call of a handler."""
    async with IPCServer(path, {"tool": handler}, tool_timeout=timeout):
        return await (await connect(path)).request(call("tool"))


@pytest.fixture
async def server(tools: Tools, folder: Path) -> AsyncIterator[IPCServer]:
    async with IPCServer(folder / "s.sock", tools.handlers) as server:
        yield server


async def test_a_call_is_answered_with_its_result(server: IPCServer, raw_peer: Connect) -> None:
    """IPC-P-01, IPC-P-10, IPC-P-11."""
    peer = await raw_peer(server.socket_path)
    response = await peer.request(call("echo", {"city": "Zürich"}))
    assert response == {
        "result": {"content": [{"type": "text", "text": json.dumps({"city": "Zürich"})}], "isError": False}
    }


async def test_a_connection_carries_one_call_after_another(server: IPCServer, raw_peer: Connect) -> None:
    """IPC-P-04, IPC-P-05."""
    peer = await raw_peer(server.socket_path)
    for number in range(3):
        assert str(number) in str(await peer.request(call("echo", {"n": number})))


async def test_a_request_before_the_last_response_ends_the_connection(
    server: IPCServer, tools: Tools, raw_peer: Connect
) -> None:
    """IPC-P-05: two outstanding requests on one connection break the protocol."""
    peer = await raw_peer(server.socket_path)
    for message in (call("wait"), call("echo")):
        peer.send(json.dumps(message).encode())
    assert await peer.is_ended()
    async with asyncio.timeout(LIMIT):
        await tools.cancelled.wait()
    assert tools.calls == []


async def test_nonsense_before_the_last_response_ends_the_connection(
    server: IPCServer, tools: Tools, raw_peer: Connect
) -> None:
    peer = await raw_peer(server.socket_path)
    peer.send(json.dumps(call("wait")).encode())
    await tools.started.wait()
    peer.send(b"nonsense")
    assert await peer.is_ended()


async def test_calls_on_several_connections_run_in_parallel(server: IPCServer, raw_peer: Connect) -> None:
    """IPC-P-06."""
    peers = [await raw_peer(server.socket_path) for _ in range(8)]
    answers = await asyncio.gather(*(peer.request(call("meet", {"parties": 8})) for peer in peers))
    assert [answer["result"]["content"][0]["text"] for answer in answers] == ["met"] * 8


async def test_an_unknown_method_is_answered_with_an_error(server: IPCServer, raw_peer: Connect) -> None:
    """IPC-P-E04; the connection stays."""
    peer = await raw_peer(server.socket_path)
    response = await peer.request({"method": "list_tools", "params": {}})
    assert response["error"]["type"] == "UnknownMethodError"
    assert "result" not in response  # IPC-D-15
    assert "result" in await peer.request(call("echo"))


async def test_an_unknown_tool_is_answered_with_its_name_and_the_known_ones(
    server: IPCServer, raw_peer: Connect
) -> None:
    """IPC-P-13, IPC-P-E05, IPC-P-18."""
    response = await (await raw_peer(server.socket_path)).request(call("nope"))
    assert response["error"]["type"] == "ToolNotFoundError"
    assert response["error"]["message"] == "The tool 'nope' is not known. Known tools: echo, fail, meet, wait."


async def test_a_tool_that_raises_is_reported_by_class_and_message_and_its_traceback_only_logged(
    server: IPCServer, raw_peer: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """IPC-P-E06, IPC-P-19, IPC-P-21."""
    response = await (await raw_peer(server.socket_path)).request(call("fail"))
    assert response == {"error": {"message": "no such city", "type": "ValueError"}}
    assert "Traceback" in caplog.text
    assert 'raise ValueError("no such city")' in caplog.text


async def test_nonsense_from_a_tool_is_an_error(folder: Path, raw_peer: Connect) -> None:
    """IPC-P-21: a handler that returns nonsense."""

    async def handler(arguments: dict[str, object]) -> Any:
        return "sunny"

    response = await answer_of(handler, folder / "s", raw_peer)
    assert response["error"]["type"] == "InvalidToolResultError"
    assert "it is a str" in response["error"]["message"]


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, "\ud800"], ids=["nan", "set", "half a character"])
async def test_a_result_that_json_cannot_say_is_an_error(folder: Path, raw_peer: Connect, value: object) -> None:
    async def handler(arguments: dict[str, object]) -> dict[str, object]:
        return {"content": [], "structuredContent": {"value": value}}

    response = await answer_of(handler, folder / "s", raw_peer)
    assert response["error"]["type"] == "UnencodableMessageError"


async def test_a_result_larger_than_allowed_is_an_error(folder: Path, raw_peer: Connect) -> None:
    """IPC-P-E02, IPC-D-16: the sender finds out, and the model reads it."""

    async def handler(arguments: dict[str, object]) -> dict[str, object]:
        return {"content": [{"type": "text", "text": "a" * MAX_MESSAGE_SIZE}]}

    response = await answer_of(handler, folder / "s", raw_peer)
    assert response["error"]["type"] == "LocalMessageSizeError"
    assert "at most 10,485,760" in response["error"]["message"]


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (KeyError(), "KeyError", "it was raised without a message"),
        (Wordless(), "Wordless", "it was raised without a message"),
        (SystemExit(3), "SystemExit", "3"),
        (asyncio.CancelledError(), "CancelledError", "it was raised without a message"),
        (TimeoutError("its own"), "TimeoutError", "its own"),
        (OSError("\ud800"), "OSError", "\\ud800"),
        (ValueError("a" * 30_000), "ValueError", "a" * 20_000 + "…"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
async def test_whatever_a_tool_raises_there_is_an_answer(
    folder: Path, raw_peer: Connect, error: BaseException, kind: str, message: str
) -> None:
    """IPC-P-21, IPC-P-18: a handler that is cancelled from within, or raises what has no message."""

    async def handler(arguments: dict[str, object]) -> dict[str, object]:
        raise error

    response = await answer_of(handler, folder / "s", raw_peer)
    assert response == {"error": {"message": message, "type": kind}}


async def test_a_tool_that_takes_longer_than_allowed_is_an_error_and_others_go_on(
    tools: Tools, folder: Path, raw_peer: Connect
) -> None:
    """IPC-P-21: a handler that blocks."""
    async with IPCServer(folder / "s", tools.handlers, tool_timeout=0.05) as server:
        slow, quick = await raw_peer(server.socket_path), await raw_peer(server.socket_path)
        slow.send(json.dumps(call("wait")).encode())
        await tools.started.wait()
        assert "result" in await quick.request(call("echo"))
        response = await slow.receive()
    assert response["error"] == {
        "type": "TimeoutError",
        "message": "the tool 'wait' did not answer within 0.05 seconds",
    }
    assert tools.cancelled.is_set()


async def test_the_end_of_a_connection_cancels_its_call(server: IPCServer, tools: Tools, raw_peer: Connect) -> None:
    """IPC-P-32: that is how a cancellation travels."""
    peer = await raw_peer(server.socket_path)
    peer.send(json.dumps(call("wait")).encode())
    await tools.started.wait()
    await peer.close()
    async with asyncio.timeout(LIMIT):
        await tools.cancelled.wait()


async def test_a_handler_knows_its_call_and_the_context_of_the_start(
    folder: Path, raw_peer: Connect, tools: Tools
) -> None:
    """IPC-P-38, IPC-P-51: the model's id of the call, and the caller's dependencies."""
    who = contextvars.ContextVar("who", default="nobody")
    seen: list[object] = []

    async def handler(arguments: dict[str, object]) -> dict[str, object]:
        seen.extend([current_call(), who.get(), asyncio.get_running_loop()])
        who.set("a handler")
        return {"content": []}

    who.set("the caller")
    async with IPCServer(folder / "s", {"tool": handler}) as server:
        peer = await raw_peer(server.socket_path)
        await peer.request(call("tool", tool_use_id="toolu_1"))
        await peer.request(call("tool"))
    loop = asyncio.get_running_loop()
    assert seen == [ToolCall("tool", "toolu_1"), "the caller", loop, ToolCall("tool", None), "the caller", loop]
    assert current_call() is None


async def test_a_payload_that_is_not_json_is_answered_and_the_connection_stays(
    server: IPCServer, raw_peer: Connect
) -> None:
    """IPC-P-E03."""
    peer = await raw_peer(server.socket_path)
    peer.send(b"nonsense")
    assert (await peer.receive())["error"]["type"] == "InvalidPayloadError"
    assert "result" in await peer.request(call("echo"))


async def test_a_request_larger_than_allowed_is_answered_and_the_connection_ends(
    server: IPCServer, raw_peer: Connect
) -> None:
    """IPC-P-03."""
    peer = await raw_peer(server.socket_path)
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


async def test_the_socket_is_its_owners_alone_and_goes_with_the_server(server: IPCServer) -> None:
    """IPC-D-27, IPC-D-33."""
    found = server.socket_path.stat()
    assert stat.S_ISSOCK(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == SOCKET_PERMISSIONS == 0o600
    assert server.is_serving
    assert "serving, 0 connections" in repr(server)
    for _ in range(2):
        await server.stop()
        assert not server.socket_path.exists()
    assert not server.is_serving
    assert "not serving" in repr(server)


async def test_a_server_that_runs_does_not_start_again(server: IPCServer) -> None:
    with pytest.raises(SessionStateError):
        await server.start()


async def test_stopping_answers_the_calls_that_run(server: IPCServer, tools: Tools, raw_peer: Connect) -> None:
    peer = await raw_peer(server.socket_path)
    peer.send(json.dumps(call("wait")).encode())
    await tools.started.wait()
    await server.stop()
    assert (await peer.receive())["error"]["type"] == "CancelledError"
    assert await peer.is_ended()


async def test_a_handler_that_takes_no_notice_of_its_cancellation_is_left_behind(
    folder: Path, raw_peer: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
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

    server = IPCServer(folder / "s", {"tool": handler})
    await server.start()
    peer = await raw_peer(server.socket_path)
    peer.send(json.dumps(call("tool")).encode())
    await started.wait()
    await server.stop()
    assert "left behind" in caplog.text
    assert await peer.is_ended()
    go_on.set()


async def test_a_tool_may_stop_its_own_server(folder: Path, raw_peer: Connect) -> None:
    async def handler(arguments: dict[str, object]) -> dict[str, object]:
        await server.stop()
        return {"content": []}

    server = IPCServer(folder / "s", {"tool": handler})
    await server.start()
    peer = await raw_peer(server.socket_path)
    peer.send(json.dumps(call("tool")).encode())
    assert await peer.is_ended()
    assert not server.socket_path.exists()


async def test_a_peer_that_does_not_read_is_cut_off(
    folder: Path, raw_peer: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_FLUSH_TIMEOUT", 0.01)
    answered = asyncio.Event()

    async def handler(arguments: dict[str, object]) -> dict[str, object]:
        answered.set()
        return {"content": [{"type": "text", "text": "a" * 5_000_000}]}

    async with IPCServer(folder / "s", {"tool": handler}) as server:
        peer = await raw_peer(server.socket_path)
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        peer.send(json.dumps(call("tool")).encode())
        await answered.wait()
    assert not server.socket_path.exists()


async def test_what_is_in_the_way_of_the_socket_is_refused(folder: Path) -> None:
    """IPC-D-29: a symbolic link too, whether it leads somewhere or not."""
    (folder / "file").touch()
    (folder / "link").symlink_to(folder / "file")
    (folder / "dangling").symlink_to(folder / "nowhere")
    for name in ("file", "link", "dangling"):
        with pytest.raises(SocketPathError, match="Something is in the way"):
            await IPCServer(folder / name, {}).start()
        assert (folder / name).is_symlink() == (name != "file")
    assert not (folder / "nowhere").exists()


async def test_the_socket_of_a_living_server_is_refused_and_stays(server: IPCServer, raw_peer: Connect) -> None:
    """IPC-D-30."""
    with pytest.raises(SocketPathError):
        await IPCServer(server.socket_path, {}).start()
    assert "result" in await (await raw_peer(server.socket_path)).request(call("echo"))


async def test_a_start_that_is_cancelled_leaves_no_socket(folder: Path) -> None:
    server = IPCServer(folder / "s", {})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await server.start()
    assert not server.socket_path.exists()
    assert not server.is_serving


async def test_another_file_at_the_path_is_not_removed(server: IPCServer) -> None:
    server.socket_path.unlink()
    server.socket_path.write_text("somebody else's", encoding="utf-8")
    await server.stop()
    assert server.socket_path.exists()
