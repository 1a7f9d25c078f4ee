"""Tool calls across processes: framing, Unix-socket server, stdio bridge.

What is named here is loaded when it is first used. Running the bridge imports this package first, and nothing that
takes time may come with it.
"""

# `typing` would cost the bridge some milliseconds; type checkers know this name without it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from .calls import (
        ToolCall,
        current_call,
    )
    from .client import (
        IPCClient,
    )
    from .constants import (
        LENGTH_PREFIX_SIZE,
        MAX_MESSAGE_SIZE,
        SCHEMA_FILE_PREFIX,
        SOCKET_FILE_PREFIX,
        SOCKET_FILE_SUFFIX,
        SOCKET_PERMISSIONS,
    )
    from .errors import (
        BridgeStartupError,
        InvalidPayloadError,
        InvalidRequestError,
        InvalidToolResultError,
        IPCConnectionError,
        IPCError,
        IPCMessageSizeError,
        IPCToolExecutionError,
        LocalMessageSizeError,
        LocalProtocolError,
        RemoteMessageSizeError,
        RemoteProtocolError,
        SessionStateError,
        SocketPathError,
        ToolNotFoundError,
        TransportUnavailableError,
        UnencodableMessageError,
        UnknownMethodError,
    )
    from .framing import (
        END_OF_STREAM,
        NEED_DATA,
        Event,
        Frame,
        FrameDecoder,
        Signal,
        encode_frame,
    )
    from .messages import (
        AudioContent,
        CallToolParams,
        EmbeddedResource,
        ImageContent,
        IPCErrorPayload,
        IPCErrorResponse,
        IPCRequest,
        IPCResponse,
        ResourceLink,
        TextContent,
        ToolHandler,
        ToolResult,
        ToolResultContent,
        ToolSchema,
    )
    from .probe import (
        check_bridge,
    )
    from .server import (
        IPCServer,
    )
    from .serving import (
        Served,
        serve,
    )
    from .session import (
        IPCSession,
        SessionState,
        StdioServerConfig,
    )
    from .transport import (
        DEFAULT_TRANSPORT,
        TransportChoice,
        TransportType,
        resolve_transport,
    )

__all__ = [
    "DEFAULT_TRANSPORT",
    "END_OF_STREAM",
    "LENGTH_PREFIX_SIZE",
    "MAX_MESSAGE_SIZE",
    "NEED_DATA",
    "SCHEMA_FILE_PREFIX",
    "SOCKET_FILE_PREFIX",
    "SOCKET_FILE_SUFFIX",
    "SOCKET_PERMISSIONS",
    "AudioContent",
    "BridgeStartupError",
    "CallToolParams",
    "EmbeddedResource",
    "Event",
    "Frame",
    "FrameDecoder",
    "IPCClient",
    "IPCConnectionError",
    "IPCError",
    "IPCErrorPayload",
    "IPCErrorResponse",
    "IPCMessageSizeError",
    "IPCRequest",
    "IPCResponse",
    "IPCServer",
    "IPCSession",
    "IPCToolExecutionError",
    "ImageContent",
    "InvalidPayloadError",
    "InvalidRequestError",
    "InvalidToolResultError",
    "LocalMessageSizeError",
    "LocalProtocolError",
    "RemoteMessageSizeError",
    "RemoteProtocolError",
    "ResourceLink",
    "Served",
    "SessionState",
    "SessionStateError",
    "Signal",
    "SocketPathError",
    "StdioServerConfig",
    "TextContent",
    "ToolCall",
    "ToolHandler",
    "ToolNotFoundError",
    "ToolResult",
    "ToolResultContent",
    "ToolSchema",
    "TransportChoice",
    "TransportType",
    "TransportUnavailableError",
    "UnencodableMessageError",
    "UnknownMethodError",
    "check_bridge",
    "current_call",
    "encode_frame",
    "resolve_transport",
    "serve",
]

_MODULES = {
    "calls": (
        "ToolCall",
        "current_call",
    ),
    "client": ("IPCClient",),
    "constants": (
        "LENGTH_PREFIX_SIZE",
        "MAX_MESSAGE_SIZE",
        "SCHEMA_FILE_PREFIX",
        "SOCKET_FILE_PREFIX",
        "SOCKET_FILE_SUFFIX",
        "SOCKET_PERMISSIONS",
    ),
    "errors": (
        "BridgeStartupError",
        "IPCConnectionError",
        "IPCError",
        "IPCMessageSizeError",
        "IPCToolExecutionError",
        "InvalidPayloadError",
        "InvalidRequestError",
        "InvalidToolResultError",
        "LocalMessageSizeError",
        "LocalProtocolError",
        "RemoteMessageSizeError",
        "RemoteProtocolError",
        "SessionStateError",
        "SocketPathError",
        "ToolNotFoundError",
        "TransportUnavailableError",
        "UnencodableMessageError",
        "UnknownMethodError",
    ),
    "framing": (
        "END_OF_STREAM",
        "Event",
        "Frame",
        "FrameDecoder",
        "NEED_DATA",
        "Signal",
        "encode_frame",
    ),
    "messages": (
        "AudioContent",
        "CallToolParams",
        "EmbeddedResource",
        "IPCErrorPayload",
        "IPCErrorResponse",
        "IPCRequest",
        "IPCResponse",
        "ImageContent",
        "ResourceLink",
        "TextContent",
        "ToolHandler",
        "ToolResult",
        "ToolResultContent",
        "ToolSchema",
    ),
    "probe": ("check_bridge",),
    "server": ("IPCServer",),
    "serving": (
        "Served",
        "serve",
    ),
    "session": (
        "IPCSession",
        "SessionState",
        "StdioServerConfig",
    ),
    "transport": (
        "DEFAULT_TRANSPORT",
        "TransportChoice",
        "TransportType",
        "resolve_transport",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value  # found without this function from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
