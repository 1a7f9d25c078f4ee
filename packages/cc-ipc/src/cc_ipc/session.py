"""`IPCSession`: a server, its socket and the schema file that a bridge reads, made and removed together.

It knows names, files and the order of things, and nothing of frames or of the CLI that starts the bridge.
"""

import os
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypedDict

from .errors import SessionStateError, UnencodableMessageError
from .files import LockedFile
from .leftovers import remove_leftovers, schema_file_name, socket_file_name
from .messages import ToolHandler, ToolSchema
from .payload import encode_json
from .server import IPCServer
from .sockets import fits_socket_path

__all__ = ["IPCSession", "SessionState", "StdioServerConfig"]

# Where a socket goes when its path in the temporary folder would be too long. Everyone may write there, and nobody may
# touch another's files.
_SHORT_FOLDER = Path("/tmp")  # noqa: S108 - the files are private from their first instant


class SessionState(Enum):
    """The states of a session, in their order; there is no way back."""

    CREATED = "created"
    STARTED = "started"
    STOPPED = "stopped"


class StdioServerConfig(TypedDict):
    """How an MCP host starts the bridge: the form of the CLI's `--mcp-config` and of the SDK's `mcp_servers`."""

    type: Literal["stdio"]
    command: str
    args: list[str]


class IPCSession:
    """Offers tools to one bridge or several, from `start` to `stop`.

    Nothing exists before `start`, and nothing is left after `stop`, whatever happened between. Use it with `async
    with`, or call `stop` in a `finally`.

    Args:
        tool_handlers: What runs each tool, by name.
        tool_schemas: How each tool is listed.
        tool_timeout: Seconds that a call may take; None: as long as it takes.
        folder: Where socket and schema file go. Default: the temporary folder, or a shorter one if paths get too long.
    """

    def __init__(
        self,
        tool_handlers: Mapping[str, ToolHandler],
        tool_schemas: Sequence[ToolSchema],
        *,
        tool_timeout: float | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        session_id = uuid.uuid4().hex
        self._folder = _folder_for(socket_file_name(session_id)) if folder is None else Path(folder)
        self._schema_path = self._folder / schema_file_name(session_id)
        self._handlers = dict(tool_handlers)
        self._schemas = list(tool_schemas)
        self._server = IPCServer(self._folder / socket_file_name(session_id), self._handlers, tool_timeout=tool_timeout)
        self._schema_file: LockedFile | None = None
        self._state = SessionState.CREATED

    @property
    def socket_path(self) -> Path:
        """The socket; it exists while the session is started."""
        return self._server.socket_path

    @property
    def schema_path(self) -> Path:
        """The file with the tools' schemas; it exists while the session is started."""
        return self._schema_path

    @property
    def tool_handlers(self) -> Mapping[str, ToolHandler]:
        """What runs each tool."""
        return self._handlers

    @property
    def tool_schemas(self) -> Sequence[ToolSchema]:
        """How each tool is listed."""
        return self._schemas

    @property
    def server(self) -> IPCServer | None:
        """The server while it runs."""
        return self._server if self._state is SessionState.STARTED else None

    @property
    def state(self) -> SessionState:
        """Where the session is in its life."""
        return self._state

    @property
    def command(self) -> list[str]:
        """The command that starts a bridge: this Python, the bridge module, the socket and the schema file."""
        config = self.mcp_server_config()
        return [config["command"], *config["args"]]

    def mcp_server_config(self) -> StdioServerConfig:
        """Return how an MCP host starts a bridge. It may be asked before `start`, and used after it."""
        # -P: the host's working folder must not be a place where Python finds modules.
        args = ["-P", "-m", "cc_ipc.bridge", str(self.socket_path), str(self.schema_path)]
        return {"type": "stdio", "command": sys.executable, "args": args}

    async def start(self) -> None:
        """Remove what dead sessions have left, write the schema file, and take calls.

        Raises:
            SessionStateError: It was started or stopped before.
            UnencodableMessageError: The schemas are not JSON's.
            SocketPathError: Something is in the way of a file, or a path is too long.
            OSError: The folder is missing, closed or full.
        """
        if self._state is not SessionState.CREATED:
            raise SessionStateError(state=self._state.value, wanted="start")
        self._state = SessionState.STARTED
        try:
            schemas = _encoded(self._schemas)
            remove_leftovers([self._folder])
            # The schema file first: its lock says that the session lives before there is a socket that nobody serves
            # yet.
            self._schema_file = LockedFile(self._schema_path, schemas)
            await self._server.start()
            self._check_started()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Remove socket and schema file, cancel the calls that run, and end the connections. Allowed in any state."""
        self._state = SessionState.STOPPED
        file, self._schema_file = self._schema_file, None
        if file is not None:
            file.unlink()
        try:
            await self._server.stop()
        finally:
            if file is not None:
                file.release()  # last, for it tells the bridges to end

    def _check_started(self) -> None:
        if self._state is not SessionState.STARTED:  # stopped by somebody else meanwhile
            raise SessionStateError(state=self._state.value, wanted="start")

    def __repr__(self) -> str:
        return f"<IPCSession {self._state.value}, {len(self._schemas)} tools, {self.socket_path}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()


def _encoded(schemas: Sequence[ToolSchema]) -> bytes:
    try:
        return encode_json(schemas)
    except ValueError as error:
        raise UnencodableMessageError(reason=f"in the tool schemas, {error}") from error


def _folder_for(socket_name: str) -> Path:
    folder = Path(tempfile.gettempdir())
    return folder if fits_socket_path(folder / socket_name) else _SHORT_FOLDER
