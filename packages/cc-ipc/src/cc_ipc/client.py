"""`IPCClient`: calls a server's tools over a Unix socket, as the bridge does, for programs with an event loop.

A connection carries a single call at a time, is opened when a call needs it, and is kept for the next call. After a
connection error it is unknown whether the tool ran, so calls are never retried.
"""

import asyncio
import socket
import sys
from collections.abc import Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Self, cast

from cc_ipc_bridge.constants import WindowsUnsupportedError
from cc_ipc_bridge.peer import is_own_peer

from .errors import IPCConnectionError, IPCError, RemoteProtocolError, SessionStateError
from .framing import Frame, FrameDecoder, encode_frame
from .messages import CallToolParams, IPCRequest, ToolResult, parse_response

if TYPE_CHECKING:
    from cc_ipc_bridge.peer import PeerSocket
    from cc_types import JsonValue

# The kernel connects at once, unless more peers are waiting than the server's queue holds.
_CONNECT_TIMEOUT = 5.0

# Linux reports a full queue at once, so a client must poll. A server accepts many connections in this time.
_CONNECT_INTERVAL = 0.005

# An aborted connection sends no more data, so the loop reports the end in the next round.
_CLOSE_TIMEOUT = 1.0


class _Channel(asyncio.Protocol):
    """A connection to the server, with at most one pending request."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport  # set by `connection_made`, the first callback
        self._response: asyncio.Future[JsonValue] | None = None
        self._is_foreign = False
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_open(self) -> bool:
        return not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not is_own_peer(cast("PeerSocket", transport.get_extra_info("socket"))):
            self._is_foreign = True
            self.abort()

    def data_received(self, data: bytes) -> None:
        self._decoder.receive_data(data)
        try:
            # All frames: the next call must not take an unrequested frame as the response.
            while isinstance(event := self._decoder.next_event(), Frame):
                self._deliver(event.message)
        except RemoteProtocolError as error:
            self._fail(error)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(IPCConnectionError(path=self._path, reason="The connection ended during a call, which may have run"))
        self.closed.set_result(None)

    async def request(self, frame: bytes) -> "JsonValue":
        """Send a request and return the response; end the connection if the wait is cancelled."""
        if not self.is_open:
            foreign = "The server runs as another user; nothing was sent"
            reason = foreign if self._is_foreign else "The server has just closed"
            raise IPCConnectionError(path=self._path, reason=reason)
        self._response = asyncio.get_running_loop().create_future()
        self._transport.write(frame)
        try:
            return await self._response
        except BaseException:
            self.abort()
            raise
        finally:
            self._response = None

    def abort(self) -> None:
        self._transport.abort()

    def _deliver(self, message: "JsonValue") -> None:
        if self._response is None or self._response.done():
            raise RemoteProtocolError("The server sent a response without a request.")
        self._response.set_result(message)

    def _fail(self, error: IPCError) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_exception(error)


async def _connected_socket(path: str) -> socket.socket:
    """Connect to the server, and wait while its queue is full: asyncio would take that for a connection."""
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        while True:
            try:
                sock.connect(path)
            except BlockingIOError:
                await asyncio.sleep(_CONNECT_INTERVAL)
            else:
                return sock
    except BaseException:
        sock.close()
        raise


class IPCClient:
    """Client of an `IPCServer`. Calls may run in parallel, each over a connection of its own.

    Use it with `async with`, or call `close` in a `finally`, in a single event loop.

    Args:
        socket_path: The server's socket. The client connects at the first call.
    """

    def __init__(self, socket_path: str | PathLike[str]) -> None:
        self._path = fspath(socket_path)
        self._channels: set[_Channel] = set()
        self._idle: list[_Channel] = []
        self._closed = False

    async def call_tool(
        self, name: str, arguments: "Mapping[str, JsonValue]", *, tool_use_id: str | None = None
    ) -> ToolResult:
        """Call a tool and return the result, whose `isError` is true if the tool reports a failure.

        There is no time limit. Cancelling this call cancels the tool in the server.

        Raises:
            IPCToolExecutionError: The tool raised or is unknown, or the result cannot be sent.
            IPCConnectionError: The server cannot be reached, or the connection ended during the call, which may have
                run.
            IPCMessageSizeError: The request or the response is too large.
            UnencodableMessageError: The arguments cannot be encoded as JSON.
            RemoteProtocolError: The server sent an invalid response.
            SessionStateError: The client is closed.
        """
        params: CallToolParams = {"name": name, "arguments": dict(arguments)}
        if tool_use_id is not None:
            params["tool_use_id"] = tool_use_id
        request: IPCRequest = {"method": "call_tool", "params": params}
        frame = encode_frame(request)
        channel = self._idle_channel() or await self._connect()
        response = await channel.request(frame)
        if channel.is_open:
            self._idle.append(channel)
        return parse_response(response, tool=name)

    async def close(self) -> None:
        """Close all connections, which ends the calls. Idempotent."""
        self._closed = True
        self._idle.clear()
        ends = [channel.closed for channel in self._channels]
        for channel in self._channels:
            channel.abort()
        if ends:
            await asyncio.wait(ends, timeout=_CLOSE_TIMEOUT)

    def _idle_channel(self) -> _Channel | None:
        while self._idle:
            channel = self._idle.pop()
            if channel.is_open:
                return channel
        return None

    async def _connect(self) -> _Channel:
        if self._closed:
            raise SessionStateError(state="closed", wanted="call a tool")
        if sys.platform == "win32":
            raise WindowsUnsupportedError
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                sock = await _connected_socket(self._path)
                _, channel = await asyncio.get_running_loop().create_unix_connection(
                    lambda: _Channel(self._path), sock=sock
                )
        except OSError as error:  # including `TimeoutError`, which has no message
            cause = str(error) or f"it did not accept the connection within {_CONNECT_TIMEOUT:g} seconds"
            raise IPCConnectionError(path=self._path, reason=f"Cannot connect to the server: {cause}") from error
        if self._closed:  # while connecting
            channel.abort()
            raise SessionStateError(state="closed", wanted="call a tool")
        self._channels.add(channel)
        channel.closed.add_done_callback(lambda _: self._channels.discard(channel))
        return channel

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<IPCClient {self._path} {state}, {len(self._channels)} connections, {len(self._idle)} of them idle>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
