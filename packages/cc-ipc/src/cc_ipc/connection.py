"""One connection of the server: requests come in one at a time, and each gets its response.

It joins the decoder to the event loop and knows nothing of what a tool does. A request that comes before the last one
was answered breaks the protocol, and ends the connection; the end of the connection cancels the call that runs.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

from .calls import error_frame
from .errors import IPCError, RemoteMessageSizeError, RemoteProtocolError, SessionStateError
from .framing import Frame, FrameDecoder
from .messages import CallToolParams, parse_request
from .peer import is_own_peer

if TYPE_CHECKING:
    from .peer import PeerSocket

__all__ = ["Answer", "Connection", "Hub"]

_log = logging.getLogger("cc_ipc")


Answer: TypeAlias = Callable[[CallToolParams], Awaitable[bytes]]
"""Makes a call and returns the response as a frame."""


@dataclass
class Hub:
    """What the connections of a server have in common."""

    answer: Answer
    is_open: bool = False
    """Whether peers and calls are taken."""
    connections: "set[Connection]" = field(default_factory=lambda: set[Connection]())
    """Those that are open. They put themselves here, and take themselves out."""


class Connection(asyncio.Protocol):
    """One peer of a server.

    Args:
        hub: What it has in common with the others.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._decoder = FrameDecoder()
        self._transport: asyncio.Transport  # from `connection_made` on, before which nobody knows this object
        self.call: asyncio.Task[None] | None = None
        """The call that runs, if one does."""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the connection has ended."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a peer, if it runs as this user."""
        self._transport = cast("asyncio.Transport", transport)
        self._hub.connections.add(self)
        if not self._hub.is_open:  # it was stopped between accepting this connection and telling of it
            self.abort()
        elif not is_own_peer(cast("PeerSocket", transport.get_extra_info("socket"))):
            _log.warning("Refused a connection of another user")
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Take bytes, and act on the requests that they complete."""
        self._decoder.receive_data(data)
        while self._take_request():
            pass

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the call that nobody waits for any more."""
        self._hub.connections.discard(self)
        if self.call is not None:
            self.call.cancel()
        self.closed.set_result(None)

    def close(self) -> None:
        """Send what is left to send, and end."""
        self._transport.close()

    def abort(self) -> None:
        """End at once."""
        self._transport.abort()

    def _take_request(self) -> bool:
        """Act on one request, and return whether there may be another one."""
        try:
            event = self._decoder.next_event()
            if not isinstance(event, Frame):
                return False
            params = parse_request(event.message)
            self._check_open()
        except (RemoteProtocolError, SessionStateError) as error:
            return not self._is_out_of_turn() and self._refuse(error)
        if self._is_out_of_turn():
            return False
        self.call = asyncio.get_running_loop().create_task(self._run(params))
        return True

    def _check_open(self) -> None:
        if not self._hub.is_open:  # it is being stopped, and waits for other calls to end
            raise SessionStateError(state="stopped", wanted="call a tool")

    def _is_out_of_turn(self) -> bool:
        """End the connection, and say so, if its last request is not answered: responses have no ids."""
        if self.call is None:
            return False
        _log.error("A peer sent a request before its last one was answered; its connection was ended")
        self.abort()
        return True

    def _refuse(self, error: IPCError) -> bool:
        """Say what is wrong with a request, and return whether the next one can be found."""
        _log.warning("A peer sent a request that was refused: %s", error)
        self._send(error_frame(error))
        if isinstance(error, RemoteMessageSizeError):
            self.close()
            return False
        return True

    async def _run(self, params: CallToolParams) -> None:
        try:
            frame = await self._hub.answer(params)
        except asyncio.CancelledError:
            self._finish(error_frame(asyncio.CancelledError("the server was stopped while the tool ran")))
            raise
        self._finish(frame)

    def _finish(self, frame: bytes) -> None:
        self.call = None
        self._send(frame)

    def _send(self, frame: bytes) -> None:
        # Not waiting for the peer to read: it has at most this one response to take.
        if not self._transport.is_closing():
            self._transport.write(frame)
