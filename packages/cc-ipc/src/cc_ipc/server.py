"""`IPCServer`: answers tool calls over a Unix socket, in the event loop that called `start`.

The server owns the socket file and the connections. A connection reads a request and writes the response, one after
another: a request that arrives before the last response breaks the protocol and ends the connection, whose end cancels
the running call. This module knows nothing of schemas, bridges or the CLI.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from cc_ipc_bridge.peer import is_own_peer

from .calls import answer, error_frame
from .errors import IPCError, RemoteMessageSizeError, RemoteProtocolError, SessionStateError
from .files import OwnedPath
from .framing import Frame, FrameDecoder
from .messages import CallToolParams, ToolHandler, parse_request
from .sockets import BACKLOG, listen_privately

if TYPE_CHECKING:
    from cc_ipc_bridge.peer import PeerSocket

_log = logging.getLogger("cc_ipc")

# A cancelled handler has this long to clean up, and is then left running, with a warning.
_HANDLER_STOP_TIMEOUT = 2.0

# A peer that reads receives the last response within milliseconds; other connections are aborted.
_FLUSH_TIMEOUT = 0.5


@dataclass
class ServerState:
    """State that a server's connections share."""

    handlers: Mapping[str, ToolHandler]
    tool_timeout: float | None
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
            frame = await answer(params, self._state.handlers, self._state.tool_timeout)
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


class IPCServer:
    """Server that runs tools for clients on a Unix socket. Only the same user's processes may connect.

    A handler runs as a task in the loop that called `start`, with the context variables of that moment. It is cancelled
    when the client disconnects and when the server stops. Use the server with `async with`, or call `stop` in a
    `finally`.

    Args:
        socket_path: Socket path. It must not exist, except as a dead server's socket.
        tool_handlers: The handler of each tool, by name.
        tool_timeout: Time limit for a call in seconds; then the response is a `TimeoutError`. `None`: no limit.
    """

    def __init__(
        self,
        socket_path: str | PathLike[str],
        tool_handlers: Mapping[str, ToolHandler],
        *,
        tool_timeout: float | None = None,
    ) -> None:
        self._path = Path(socket_path)
        self._server: asyncio.Server | None = None
        self._file: OwnedPath | None = None
        self._state = ServerState(tool_handlers, tool_timeout)

    @property
    def socket_path(self) -> Path:
        """Socket path."""
        return self._path

    @property
    def is_serving(self) -> bool:
        """True if the server accepts connections."""
        return self._state.is_open

    async def start(self) -> None:
        """Create the socket and accept connections.

        Raises:
            SessionStateError: The server runs already.
            SocketPathError: The path is too long, or exists already, for example as a symbolic link.
            OSError: The folder is missing or not writable, or this is Windows.
        """
        if self._server is not None:
            raise SessionStateError(state="started", wanted="start")
        loop, listener = asyncio.get_running_loop(), listen_privately(self._path)
        self._file = OwnedPath.at(self._path)
        # Serving starts in a second step, so that a server can be closed if this is cancelled.
        self._server = await loop.create_unix_server(
            lambda: Connection(self._state), sock=listener, backlog=BACKLOG, start_serving=False
        )
        self._state.is_open = True
        try:
            await self._server.start_serving()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Remove the socket, cancel the running calls, and close the connections. Idempotent, in any state."""
        self._state.is_open = False
        server, self._server = self._server, None
        if server is not None:
            server.close()
        file, self._file = self._file, None
        if file is not None:
            file.remove()
        try:
            await self._stop_handlers()
            await self._close_connections()
        finally:
            for connection in list(self._state.connections):
                connection.abort()

    async def _stop_handlers(self) -> None:
        calls = {connection.call for connection in self._state.connections} - {None, asyncio.current_task()}
        tasks = [call for call in calls if call is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=_HANDLER_STOP_TIMEOUT)
            if stuck:
                _log.warning("%d tool handlers ignored their cancellation and were left running", len(stuck))

    async def _close_connections(self) -> None:
        ends = [connection.closed for connection in self._state.connections]
        for connection in list(self._state.connections):
            connection.close()
        if ends:
            await asyncio.wait(ends, timeout=_FLUSH_TIMEOUT)

    def __repr__(self) -> str:
        state = "serving" if self.is_serving else "not serving"
        return f"<IPCServer {self._path} {state}, {len(self._state.connections)} connections>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
