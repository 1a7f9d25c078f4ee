"""`IPCClient`: calls a server's tools over a Unix socket, as the bridge does, for programs with an event loop.

A connection carries a single call at a time, is opened when a call needs it, and is kept for the next call. After a
connection error it is unknown whether the tool ran, so calls are never retried.
"""

import asyncio
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike, fspath
from typing import TYPE_CHECKING, Self

from cc_ipc_bridge.constants import WindowsUnsupportedError
from cc_ipc_bridge.peer import is_own_peer
from cc_ipc_bridge.relay import pop_reusable

from .errors import IPCConnectionError, RemoteProtocolError, SessionStateError
from .framing import END_OF_STREAM, Frame, FrameDecoder, encode_frame
from .messages import CallToolParams, IPCRequest, ToolResult, parse_response

if TYPE_CHECKING:
    from cc_types import JsonValue

# The kernel connects at once, unless more peers are waiting than the server queue holds.
_CONNECT_TIMEOUT = 5.0

# Linux reports a full queue at once, so a client must poll. A server accepts many connections in this time.
_CONNECT_INTERVAL = 0.005

# A response with megabytes takes few reads.
_READ_SIZE = 1 << 18


async def _connect_socket(sock: socket.socket, path: str) -> None:
    """Connect, and wait while the server queue is full: asyncio would take that for a connection."""
    sock.setblocking(False)
    while True:
        try:
            sock.connect(path)
        except BlockingIOError:
            await asyncio.sleep(_CONNECT_INTERVAL)
        else:
            return


class IPCClient:
    """Client of an `IPCServer`. Calls may run in parallel, each over a connection of its own.

    Use it with `async with`, or call `close` in a `finally`, in a single event loop.

    Args:
        socket_path: The server socket. The client connects at the first call.
    """

    def __init__(self, socket_path: str | PathLike[str]) -> None:
        self._path = fspath(socket_path)
        self._idle_connections: list[socket.socket] = []
        self._busy_connections: set[socket.socket] = set()
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
        sock = pop_reusable(self._idle_connections) or await self._connect()
        self._busy_connections.add(sock)
        try:
            response = await self._exchange(sock, frame)
        except BaseException:
            sock.close()
            raise
        finally:
            self._busy_connections.discard(sock)
        return parse_response(response, tool=name)

    async def close(self) -> None:
        """Close all connections, which ends the calls. Idempotent."""
        self._closed = True
        while self._idle_connections:
            self._idle_connections.pop().close()
        for sock in self._busy_connections:
            with suppress(OSError):  # the server has closed it already
                sock.shutdown(socket.SHUT_RDWR)

    async def _connect(self) -> socket.socket:
        if self._closed:
            raise SessionStateError(state="closed", wanted="call a tool")
        if sys.platform == "win32":
            raise WindowsUnsupportedError
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                await _connect_socket(sock, self._path)
            if self._closed:  # while connecting
                raise SessionStateError(state="closed", wanted="call a tool")
            if not is_own_peer(sock):
                reason = "The server runs as another user; nothing was sent"
                raise IPCConnectionError(path=self._path, reason=reason)
        except OSError as error:  # including `TimeoutError`, which has no message
            sock.close()
            cause = str(error) or f"it did not accept the connection within {_CONNECT_TIMEOUT:g} seconds"
            raise IPCConnectionError(path=self._path, reason=f"Cannot connect to the server: {cause}") from error
        except BaseException:
            sock.close()
            raise
        return sock

    async def _exchange(self, sock: socket.socket, frame: bytes) -> "JsonValue":
        """Send a request and return the response. The connection is kept if nothing but the response came."""
        loop, decoder = asyncio.get_running_loop(), FrameDecoder()
        try:
            await loop.sock_sendall(sock, frame)
            while not isinstance(event := decoder.next_event(), Frame):
                data = await loop.sock_recv(sock, _READ_SIZE)
                if not data:
                    raise ConnectionResetError("the server has closed it")
                decoder.receive_data(data)
        except OSError as error:
            reason = "The connection ended during a call, which may have run"
            raise IPCConnectionError(path=self._path, reason=reason) from error
        decoder.receive_data(b"")
        with suppress(RemoteProtocolError):
            if decoder.next_event() is END_OF_STREAM and not self._closed:
                self._idle_connections.append(sock)
                return event.message
        sock.close()
        return event.message

    def __repr__(self) -> str:
        state, idle_count = "closed" if self._closed else "open", len(self._idle_connections)
        count = len(self._busy_connections) + idle_count
        return f"<IPCClient {self._path} {state}, {count} connections, {idle_count} of them idle>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
