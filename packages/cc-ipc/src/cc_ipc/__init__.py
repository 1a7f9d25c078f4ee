"""Tool calls across processes: framing, a server on a Unix socket, and the bridge (`cc_ipc_bridge`) for MCP hosts."""

from cc_ipc_bridge.constants import LENGTH_PREFIX_SIZE, MAX_MESSAGE_SIZE, SOCKET_PERMISSIONS

from .calls import CurrentCall, current_call
from .client import IPCClient
from .errors import (
    BridgeStartupError,
    IPCConnectionError,
    IPCError,
    IPCMessageSizeError,
    IPCToolExecutionError,
    LocalProtocolError,
    RemoteProtocolError,
    ToolNotFoundError,
    TransportUnavailableError,
)
from .framing import END_OF_STREAM, NEED_DATA, Frame, FrameDecoder, encode_frame
from .messages import ToolHandler, ToolResult, ToolSchema
from .probe import check_bridge
from .server import IPCServer
from .session import IPCSession
from .transport import DEFAULT_TRANSPORT, TransportChoice, TransportType, resolve_transport

__all__ = [
    "DEFAULT_TRANSPORT",
    "END_OF_STREAM",
    "LENGTH_PREFIX_SIZE",
    "MAX_MESSAGE_SIZE",
    "NEED_DATA",
    "SOCKET_PERMISSIONS",
    "BridgeStartupError",
    "CurrentCall",
    "Frame",
    "FrameDecoder",
    "IPCClient",
    "IPCConnectionError",
    "IPCError",
    "IPCMessageSizeError",
    "IPCServer",
    "IPCSession",
    "IPCToolExecutionError",
    "LocalProtocolError",
    "RemoteProtocolError",
    "ToolHandler",
    "ToolNotFoundError",
    "ToolResult",
    "ToolSchema",
    "TransportChoice",
    "TransportType",
    "TransportUnavailableError",
    "check_bridge",
    "current_call",
    "encode_frame",
    "resolve_transport",
]
