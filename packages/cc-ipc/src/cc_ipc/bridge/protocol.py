"""MCP, as far as a server of tools needs it, without any I/O: a message goes in, what to do comes out.

It speaks the handshake versions, and the version of 2026 that has none and asks with `server/discover`. Each request is
answered in the version that it comes in, so nothing is remembered from one to the next. It knows neither how messages
travel nor who runs a tool.
"""

from __future__ import annotations

from ..payload import decode_json, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from cc_types import JsonValue

    RequestId: TypeAlias = str | int
    Action: TypeAlias = "Reply | Call | Cancel | None"

__all__ = ["Call", "Cancel", "McpServer", "Reply", "error_line", "result_line"]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_PROTOCOL_VERSION = -32022

# From the oldest to the newest. A client that asks for another one is offered the newest.
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_TOOL_USE_KEY = "claudecode/toolUseId"

_SERVER_INFO: JsonValue
_CAPABILITIES: JsonValue


class Reply:
    """Answer at once, with this line."""

    def __init__(self, line: bytes) -> None:
        self.line = line


class Call:
    """Have a tool run, and answer when it has."""

    def __init__(self, request_id: RequestId, params: dict[str, JsonValue], modern: bool) -> None:
        self.request_id = request_id
        self.params = params
        """The parameters of the `call_tool` request."""
        self.modern = modern
        """Whether results have the form of 2026."""


class Cancel:
    """Give up a call, and do not answer it."""

    def __init__(self, request_id: RequestId) -> None:
        self.request_id = request_id
