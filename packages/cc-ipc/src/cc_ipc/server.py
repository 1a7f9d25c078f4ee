"""`IPCServer`: answers tool calls over a Unix socket, in the event loop that called `start`.

The server owns the socket file and the connections. It knows nothing of schemas, bridges or the CLI.
"""

import asyncio
import logging
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Self

from .calls import answer
from .connection import Connection, ServerState
from .errors import SessionStateError
from .files import OwnedPath
from .messages import ToolHandler
from .sockets import BACKLOG, listen_privately

_log = logging.getLogger("cc_ipc")

# A cancelled handler has this long to clean up, and is then left running, with a warning.
_HANDLER_STOP_TIMEOUT = 2.0

# A peer that reads receives the last response within milliseconds; other connections are aborted.
_FLUSH_TIMEOUT = 0.5


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
        self._state = ServerState(lambda params: answer(params, tool_handlers, tool_timeout))

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
            SocketPathError: The path is too long or exists already.
            OSError: The folder is missing or not writable.
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
