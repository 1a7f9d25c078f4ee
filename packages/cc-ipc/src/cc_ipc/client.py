"""`IPCClient`: calls the tools of a server over its Unix socket, as the bridge does, for programs with an event loop.

It knows the protocol and nothing of MCP. A connection carries one call at a time, is opened when a call needs one, and is
kept for the next. A call is sent once: what became of one whose connection broke is not known, so it is not repeated.
"""

import asyncio
from collections.abc import Mapping
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from .errors import IPCConnectionError, IPCError, RemoteProtocolError, SessionStateError
from .framing import Frame, FrameDecoder, encode_frame
from .messages import CallToolParams, IPCRequest, ToolResult, parse_response
from .peer import is_own_peer

if TYPE_CHECKING:
    from cc_types import JsonValue

    from .peer import PeerSocket

__all__ = ["IPCClient"]

# The kernel connects at once, unless more peers are waiting than the server's queue holds.
_CONNECT_TIMEOUT = 5.0

# Nothing is left to send when a connection is aborted, so its end is reported in the loop's next round.
_CLOSE_TIMEOUT = 1.0


class _Channel(asyncio.Protocol):
    """One connection to the server, with at most one request under way."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport | None = None
        self._response: asyncio.Future[JsonValue] | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if not is_own_peer(cast("PeerSocket", transport.get_extra_info("socket"))):
            self.abort()

    def data_received(self, data: bytes) -> None:
        self._decoder.receive_data(data)
        try:
            event = self._decoder.next_event()
            if isinstance(event, Frame):
                self._deliver(event.message)
        except RemoteProtocolError as error:
            self._fail(error)
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail(
            IPCConnectionError(path=self._path, reason="The connection ended while a call was under way, which may have run")
        )
        self.closed.set_result(None)

    async def exchange(self, frame: bytes) -> "JsonValue":
        """Send a request and return the response; end the connection if it is not waited for."""
        if self._transport is None or self._transport.is_closing():
            raise IPCConnectionError(path=self._path, reason="The connection was refused: another user has the socket")
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
        if self._transport is not None:
            self._transport.abort()

    def _deliver(self, message: "JsonValue") -> None:
        if self._response is None or self._response.done():
            raise RemoteProtocolError("The other side sent a response that nobody asked for.")
        self._response.set_result(message)

    def _fail(self, error: IPCError) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_exception(error)
