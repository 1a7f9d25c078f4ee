"""`IPCSession`: a server, a socket and a schema file for the bridge, created and removed together."""

import os
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Literal, Self, TypedDict

from cc_ipc_bridge.payload import encode_json

from .errors import SessionStateError, UnencodableMessageError
from .files import LockedFile, remove_leftovers, schema_file_name, socket_file_name
from .messages import ToolHandler, ToolSchema
from .server import IPCServer
from .sockets import fits_socket_path

# Folder for a socket whose path in the temporary folder would be too long. All users may write there, but not touch
# each other's files.
_SHORT_FOLDER = Path("/tmp")  # noqa: S108 - the files are private from their creation


class IPCSessionState(Enum):
    """A session's states, in order. A session never returns to an earlier state."""

    CREATED = "created"
    STARTED = "started"
    STOPPED = "stopped"


class StdioServerConfig(TypedDict):
    """Configuration by which a host starts the bridge, as in the CLI's `--mcp-config` and the SDK's `mcp_servers`."""

    type: Literal["stdio"]
    command: str
    args: list[str]


class IPCSession:
    """Tools offered to bridges, from `start` to `stop`.

    No file exists before `start`, and none after `stop`, even if something fails in between. Use the session with
    `async with`, or call `stop` in a `finally`.

    Args:
        tool_handlers: The handler of each tool, by name.
        tool_schemas: The schemas that hosts see.
        tool_timeout: Time limit for a call in seconds. `None`: no limit.
        folder: Folder for the socket and the schema file. Default: the temporary folder, or `/tmp` if the socket path
            would be too long there.
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
        self._folder = Path(tempfile.gettempdir() if folder is None else folder)
        if folder is None and not fits_socket_path(self._folder / socket_file_name(session_id)):
            self._folder = _SHORT_FOLDER
        self._schema_path = self._folder / schema_file_name(session_id)
        self._handlers = dict(tool_handlers)
        self._schemas = list(tool_schemas)
        self._server = IPCServer(self._folder / socket_file_name(session_id), self._handlers, tool_timeout=tool_timeout)
        self._schema_file: LockedFile | None = None
        self._state = IPCSessionState.CREATED

    @property
    def socket_path(self) -> Path:
        """Socket path, which exists while the session is started."""
        return self._server.socket_path

    @property
    def schema_path(self) -> Path:
        """Schema file path, which exists while the session is started."""
        return self._schema_path

    @property
    def tool_handlers(self) -> Mapping[str, ToolHandler]:
        """The handler of each tool, by name."""
        return self._handlers

    @property
    def tool_schemas(self) -> Sequence[ToolSchema]:
        """The schemas that hosts see."""
        return self._schemas

    @property
    def server(self) -> IPCServer | None:
        """The server while it runs, otherwise `None`."""
        return self._server if self._state is IPCSessionState.STARTED else None

    @property
    def state(self) -> IPCSessionState:
        """The current state, whose `value` is `"created"`, `"started"` or `"stopped"`."""
        return self._state

    @property
    def command(self) -> list[str]:
        """The command that starts a bridge: this Python, the bridge module, the socket and the schema file."""
        config = self.mcp_server_config()
        return [config["command"], *config["args"]]

    def mcp_server_config(self) -> StdioServerConfig:
        """Return the configuration with which an MCP host starts a bridge. It is valid from `start` to `stop`."""
        # -P: Python must not import modules from the host's working folder.
        args = ["-P", "-m", "cc_ipc_bridge", str(self.socket_path), str(self.schema_path)]
        return {"type": "stdio", "command": sys.executable, "args": args}

    async def start(self) -> None:
        """Remove files that dead sessions left, write the schema file, and accept calls.

        Raises:
            SessionStateError: The session was started or stopped before.
            UnencodableMessageError: The schemas cannot be encoded as JSON.
            SocketPathError: A path exists already or is too long.
            OSError: The folder is missing, not writable or full.
        """
        if self._state is not IPCSessionState.CREATED:
            raise SessionStateError(state=self._state.value, wanted="start")
        self._state = IPCSessionState.STARTED
        try:
            try:
                schemas = encode_json(self._schemas)
            except ValueError as error:
                raise UnencodableMessageError(reason=f"in the tool schemas, {error}") from error
            remove_leftovers([self._folder])
            # The schema file first: the lock marks the session as alive before the socket exists and is served.
            self._schema_file = LockedFile(self._schema_path, schemas)
            await self._server.start()
            if self._state is not IPCSessionState.STARTED:  # stopped by another task in the meantime
                raise SessionStateError(state=self._state.value, wanted="start")
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Remove the files, cancel the running calls, and close the connections. Idempotent, in any state."""
        self._state = IPCSessionState.STOPPED
        file, self._schema_file = self._schema_file, None
        if file is not None:
            file.unlink()
        try:
            await self._server.stop()
        finally:
            if file is not None:
                file.release()  # last, because the released lock makes the bridges exit

    def __repr__(self) -> str:
        return f"<IPCSession {self._state.value}, {len(self._schemas)} tools, {self.socket_path}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
