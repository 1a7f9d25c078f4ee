"""The client, against the server and against parents that break the protocol."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import cc_ipc
from cc_ipc import client as client_module
from cc_ipc.errors import (
    InvalidPayloadError,
    InvalidRequestError,
    RemoteMessageSizeError,
    SessionStateError,
    UnencodableMessageError,
)

from .conftest import LIMIT, RESULT, StartParent, Tools, frame, full_queue, happens, is_never_own

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)


@pytest.fixture
async def client(session: cc_ipc.IPCSession) -> AsyncIterator[cc_ipc.IPCClient]:
    async with cc_ipc.IPCClient(session.socket_path) as client:
        yield client


async def test_cancelling_a_call_cancels_the_tool(client: cc_ipc.IPCClient, tools: Tools) -> None:
    call = asyncio.ensure_future(client.call_tool("wait", {}))
    await happens(tools.started)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await happens(tools.cancelled)
    await client.call_tool("echo", {})


async def test_unencodable_arguments_are_not_sent(client: cc_ipc.IPCClient, tools: Tools) -> None:
    """IPC-P-E02: the sender raises."""
    for value, error in (
        ("a" * cc_ipc.MAX_MESSAGE_SIZE, cc_ipc.IPCMessageSizeError),
        (float("nan"), UnencodableMessageError),
    ):
        with pytest.raises(error):
            await client.call_tool("echo", {"a": value})
    assert tools.calls == []


async def test_no_server_is_a_connection_error(folder: Path) -> None:
    """IPC-D-40."""
    async with cc_ipc.IPCClient(folder / "nowhere") as client:
        with pytest.raises(cc_ipc.IPCConnectionError, match="Cannot connect to the server"):
            await client.call_tool("echo", {})


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels refuse a connection when the queue is full")
async def test_a_queue_that_stays_full_is_a_connection_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """IPC-P-42: and no other user is suspected."""
    monkeypatch.setattr(client_module, "_CONNECT_TIMEOUT", 0.05)
    with full_queue(folder / "s"):
        async with cc_ipc.IPCClient(folder / "s") as client:
            with pytest.raises(cc_ipc.IPCConnectionError, match=r"not accept the connection within 0\.05 seconds"):
                await client.call_tool("echo", {})


async def test_the_servers_end_is_a_connection_error_without_a_retry(
    session: cc_ipc.IPCSession, client: cc_ipc.IPCClient, tools: Tools
) -> None:
    """IPC-P-E07, IPC-R-07."""
    call = asyncio.ensure_future(client.call_tool("wait", {}))
    await happens(tools.started)
    assert session.server is not None
    connections = vars(session.server)["_state"].connections
    for connection in list(connections):
        connection.abort()
    with pytest.raises(cc_ipc.IPCConnectionError, match="which may have run"):
        await call
    assert (await client.call_tool("echo", {}))["content"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (frame(b"nonsense"), InvalidPayloadError),
        (b"\xff\xff\xff\xff", RemoteMessageSizeError),
        (frame(b"[]"), InvalidRequestError),
        (frame(b'{"result":{"content":[]},"error":{}}'), InvalidRequestError),
        (None, cc_ipc.IPCConnectionError),
    ],
    ids=["not JSON", "too large", "no object", "both", "nothing"],
)
async def test_a_parent_that_breaks_the_protocol_is_a_remote_fault(
    fake_parent: StartParent, answer: bytes | None, error: type[Exception]
) -> None:
    """IPC-P-E03, IPC-P-03, IPC-D-15, IPC-P-E07."""
    path, _ = fake_parent(lambda payload: answer)
    async with cc_ipc.IPCClient(path) as client:
        with pytest.raises(error):
            await client.call_tool("echo", {})


async def test_a_second_response_ends_the_connection_and_answers_no_call(fake_parent: StartParent) -> None:
    path, parent = fake_parent(lambda payload: frame(RESULT) * 2)
    async with cc_ipc.IPCClient(path) as client:
        for _ in range(2):
            assert (await client.call_tool("echo", {}))["content"]
    assert parent.connections == 2


async def test_a_response_without_a_request_answers_no_call(folder: Path) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(await reader.readexactly(4))
        writer.write(frame(RESULT))
        if len(connections) == 1:
            await go_on.wait()
            writer.write(frame(b"{}"))
            sent.set()
            await done.wait()
        writer.close()

    connections = list[bytes]()
    go_on, sent, done = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with await asyncio.start_unix_server(speak, folder / "s"), cc_ipc.IPCClient(folder / "s") as client:
        await client.call_tool("echo", {})
        go_on.set()
        async with asyncio.timeout(LIMIT):
            await sent.wait()
            assert (await client.call_tool("echo", {}))["content"]
        assert "1 connections" in repr(client)
        done.set()
    assert len(connections) == 2


async def test_a_closed_client_refuses_calls(client: cc_ipc.IPCClient, tools: Tools) -> None:
    call = asyncio.ensure_future(client.call_tool("wait", {}))
    await happens(tools.started)
    for _ in range(2):
        await client.close()
    with pytest.raises(cc_ipc.IPCConnectionError):
        await call
    assert "closed, 0 connections" in repr(client)
    with pytest.raises(SessionStateError, match=r"Cannot call a tool: the state is .closed"):
        await client.call_tool("echo", {})


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels refuse a connection when the queue is full")
async def test_a_client_closed_while_it_connects_calls_nothing(folder: Path) -> None:
    with full_queue(folder / "s") as listener:
        client = cc_ipc.IPCClient(folder / "s")
        call = asyncio.ensure_future(client.call_tool("echo", {}))
        await asyncio.sleep(0)
        await client.close()
        listener.accept()[0].close()
        with pytest.raises(SessionStateError, match=r"the state is .closed"):
            await call
        assert "0 connections" in repr(client)


async def test_a_connection_that_the_server_closes_at_once_is_a_connection_error(
    session: cc_ipc.IPCSession, client: cc_ipc.IPCClient
) -> None:
    assert session.server is not None
    vars(session.server)["_state"].is_open = False
    with pytest.raises(cc_ipc.IPCConnectionError, match="The connection ended during a call, which may have run"):
        await client.call_tool("echo", {})


async def test_a_socket_of_another_user_is_refused(
    client: cc_ipc.IPCClient, tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IPC-D-28: on this side too, or another user could read the request."""
    monkeypatch.setattr(client_module, "is_own_peer", is_never_own)
    with pytest.raises(cc_ipc.IPCConnectionError, match="The server runs as another user; nothing was sent"):
        await client.call_tool("echo", {})
    assert tools.calls == []
