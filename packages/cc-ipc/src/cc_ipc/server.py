"""`IPCServer`: answers tool calls that come over a Unix socket, in the event loop that it was started in.

It owns the socket file and the connections, and ends both. It knows nothing of schemas, bridges or the CLI.
"""

import asyncio
import logging
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from .calls import answer
from .connection import Connection, Hub
from .errors import SessionStateError
from .files import OwnedPath
from .messages import CallToolParams, ToolHandler
from .sockets import BACKLOG, listen_privately

__all__ = ["IPCServer"]

_log = logging.getLogger("cc_ipc")

# A handler that was cancelled has this long to clean up. One that takes no notice is left behind, with a warning.
_HANDLER_STOP_TIMEOUT = 2.0

# A peer that reads takes its last response within milliseconds; one that does not is cut off.
_FLUSH_TIMEOUT = 0.5


class IPCServer:
    """Runs tools for the peers that connect to a Unix socket; only processes of the same user may.

    A handler runs as a task of the loop that called `start`, with the context variables of that moment. It is cancelled
    when its peer goes away, and when the server stops. Use it with `async with`, or call `stop` in a `finally`.

    Args:
        socket_path: Where the socket is made. What lies there is refused, except the socket of a server that has died.
        tool_handlers: What runs each tool, by name.
        tool_timeout: Seconds that a call may take before it is answered with a `TimeoutError`. None: as long as it
            takes.
    """

    def __init__(
        self,
        socket_path: str | PathLike[str],
        tool_handlers: Mapping[str, ToolHandler],
        *,
        tool_timeout: float | None = None,
    ) -> None:
        self._path = Path(socket_path)
        self._handlers = tool_handlers
        self._timeout = tool_timeout
        self._server: asyncio.Server | None = None
        self._file: OwnedPath | None = None
        self._hub = Hub(self._answer)

    @property
    def socket_path(self) -> Path:
        """The socket."""
        return self._path

    @property
    def is_serving(self) -> bool:
        """Whether it takes connections."""
        return self._hub.is_open

    async def start(self) -> None:
        """Make the socket and take connections.

        Raises:
            SessionStateError: It runs already.
            SocketPathError: The path is too long, or something is in the way.
            OSError: The socket's folder is missing or closed.
        """
        if self._server is not None:
            raise SessionStateError(state="started", wanted="start")
        loop, listener = asyncio.get_running_loop(), listen_privately(self._path)
        self._file = OwnedPath.found(self._path)
        # Started in a second step, so that one that is cancelled meanwhile can be closed.
        self._server = await loop.create_unix_server(
            lambda: Connection(self._hub), sock=listener, backlog=BACKLOG, start_serving=False
        )
        self._hub.is_open = True
        try:
            await self._server.start_serving()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Remove the socket, cancel the calls that run, and end the connections. Allowed in any state, and again."""
        self._hub.is_open = False
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self._remove_file()
        try:
            await self._stop_handlers()
            await self._close_connections()
        finally:
            for connection in list(self._hub.connections):
                connection.abort()

    async def _answer(self, params: CallToolParams) -> bytes:
        return await answer(params, self._handlers, self._timeout)

    def _remove_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.remove()

    async def _stop_handlers(self) -> None:
        calls = {connection.call for connection in self._hub.connections} - {None, asyncio.current_task()}
        running = [call for call in calls if call is not None]
        for call in running:
            call.cancel()
        if running:
            _, stuck = await asyncio.wait(running, timeout=_HANDLER_STOP_TIMEOUT)
            if stuck:
                _log.warning("%d tool handlers took no notice of their cancellation and were left behind", len(stuck))

    async def _close_connections(self) -> None:
        ends = [connection.closed for connection in self._hub.connections]
        for connection in list(self._hub.connections):
            connection.close()
        if ends:
            await asyncio.wait(ends, timeout=_FLUSH_TIMEOUT)

    def __repr__(self) -> str:
        state = "serving" if self.is_serving else "not serving"
        return f"<IPCServer {self._path} {state}, {len(self._hub.connections)} connections>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()
