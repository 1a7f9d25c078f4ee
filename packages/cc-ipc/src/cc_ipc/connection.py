"""A server connection: it reads a request and writes the response, one after another.

A request that arrives before the last response breaks the protocol and ends the connection, and the connection's end
cancels the running call. This module knows no tools.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

from cc_ipc_bridge.peer import is_own_peer

from .calls import error_frame
from .errors import IPCError, RemoteMessageSizeError, RemoteProtocolError, SessionStateError
from .framing import Frame, FrameDecoder
from .messages import CallToolParams, parse_request

if TYPE_CHECKING:
    from cc_ipc_bridge.peer import PeerSocket

_log = logging.getLogger("cc_ipc")


Answer: TypeAlias = Callable[[CallToolParams], Awaitable[bytes]]
"""Run a call and return the response as a frame."""


@dataclass
class ServerState:
    """State that a server's connections share."""

    answer: Answer
    is_open: bool = False
    """True if the server accepts connections and calls."""
    connections: "set[Connection]" = field(default_factory=lambda: set[Connection]())
    """The open connections. A connection adds and removes itself."""


class Connection(asyncio.Protocol):
    """Connection to a peer."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport  # set by `connection_made`, the first callback
        self.call: asyncio.Task[None] | None = None
        """The running call, if any."""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the connection has ended."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the peer if both processes run as the same user."""
        self._transport = cast("asyncio.Transport", transport)
        self._state.connections.add(self)
        if not self._state.is_open:  # the server was stopped between `accept` and this callback
            self.abort()
        elif not is_own_peer(cast("PeerSocket", transport.get_extra_info("socket"))):
            _log.warning("Refused a connection from another user's process")
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Decode bytes, and start the calls that are complete."""
        self._decoder.receive_data(data)
        while self._take_request():
            pass

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the running call, as its response cannot be sent."""
        self._state.connections.discard(self)
        if self.call is not None:
            self.call.cancel()
        self.closed.set_result(None)

    def close(self) -> None:
        """End the connection after the pending output is sent."""
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once, without sending pending output."""
        self._transport.abort()

    def _take_request(self) -> bool:
        """Handle a request, and return true if more may be buffered."""
        try:
            event = self._decoder.next_event()
            if not isinstance(event, Frame):
                return False
            params = parse_request(event.message)
            if not self._state.is_open:  # the server is stopping, and waits for other calls to end
                raise SessionStateError(state="stopped", wanted="call a tool")
        except (RemoteProtocolError, SessionStateError) as error:
            return not self._abort_if_pipelined() and self._refuse(error)
        if self._abort_if_pipelined():
            return False
        self.call = asyncio.get_running_loop().create_task(self._run(params))
        return True

    def _abort_if_pipelined(self) -> bool:
        """Abort and return true if the last request is still unanswered: responses have no ids."""
        if self.call is None:
            return False
        _log.error("A peer sent a request before the response to the last request; the connection was closed")
        self.abort()
        return True

    def _refuse(self, error: IPCError) -> bool:
        """Send the error for a request, and return true if the start of the next request is known."""
        _log.warning("Refused a request: %s", error)
        self._send(error_frame(error))
        if isinstance(error, RemoteMessageSizeError):
            self.close()
            return False
        return True

    async def _run(self, params: CallToolParams) -> None:
        try:
            frame = await self._state.answer(params)
        except asyncio.CancelledError:
            self._finish(error_frame(asyncio.CancelledError("the server was stopped while the tool ran")))
            raise
        self._finish(frame)

    def _finish(self, frame: bytes) -> None:
        self.call = None
        self._send(frame)

    def _send(self, frame: bytes) -> None:
        # No wait for the peer to read: at most this response is buffered.
        if not self._transport.is_closing():
            self._transport.write(frame)
