"""The part of MCP that a tool server needs, without I/O: a line goes in, an action comes out; and the list of tools.

It supports the versions with a handshake, and version 2026-07-28 without, where a client sends `server/discover`
instead. Each response has the request version, so no state is kept between requests.
"""

from __future__ import annotations

from .payload import decode_json, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from cc_types import JsonValue

    RequestId: TypeAlias = str | int
    Action: TypeAlias = "bytes | CallFrame | CancelFrame | None"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_PROTOCOL_VERSION = -32022

# From the oldest to the newest. A client that requests another version is offered the newest.
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)

# A copy of the package version: `importlib.metadata` takes longer to import than the bridge. A test compares both.
SERVER_INFO: dict[str, JsonValue] = {"name": "cc-ipc", "version": "0.1.0"}

_CAPABILITIES: dict[str, JsonValue] = {"tools": {}}
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
_TOOL_USE_ID_KEY = "claudecode/toolUseId"

# Optional fields in a `ToolSchema`, and MCP names for them.
_OPTIONAL = {"title": "title", "output_schema": "outputSchema", "annotations": "annotations", "_meta": "_meta"}

# Fields that version 2026-07-28 requires in every result, and in results that a client may cache.
_MODERN: dict[str, JsonValue] = {"resultType": "complete", "_meta": {_SERVER_INFO_KEY: SERVER_INFO}}
_CACHEABLE: dict[str, JsonValue] = {**_MODERN, "ttlMs": 0, "cacheScope": "private"}


class CallFrame:
    """Action: run a tool, and respond with the result."""

    def __init__(self, request_id: RequestId, params: dict[str, JsonValue], modern: bool) -> None:
        self.request_id = request_id
        self.params = params  # for the `call_tool` request
        self.modern = modern  # true if the result has the form of version 2026-07-28


class CancelFrame:
    """Action: cancel a call, and send no response."""

    def __init__(self, request_id: RequestId) -> None:
        self.request_id = request_id


def result_line(request_id: RequestId, result: bytes) -> bytes:
    """Return the response to a request as a line; `result` is JSON without line breaks."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (encode_json(request_id), result)


def error_line(request_id: RequestId | None, code: int, message: str, data: JsonValue = None) -> bytes:
    """Return the error response to a request as a line; `request_id` is `None` if the id is unknown."""
    error: dict[str, JsonValue] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    try:
        return encode_json({"jsonrpc": "2.0", "id": request_id, "error": error}) + b"\n"
    except ValueError:  # the message quotes a lone surrogate, which JSON can express and UTF-8 cannot
        return error_line(request_id, code, message.encode("ascii", "backslashreplace").decode())


class McpServer:
    """Protocol logic for an MCP server: it maps each client line to an action. The tools are in the MCP form."""

    def __init__(self, tools: list[JsonValue]) -> None:
        self._tools = tools

    def receive(self, line: bytes) -> Action:
        """Return the action for a line: the response as a line, if no tool is needed.

        `None` for a blank line, a response, and most notifications.
        """
        if not line.strip():
            return None
        try:
            message = decode_json(line)
        except ValueError as error:
            return error_line(None, PARSE_ERROR, f"The line is not JSON: {error}")
        if not isinstance(message, dict):
            return error_line(None, INVALID_REQUEST, "A message is a JSON object; batches are not supported")
        if "method" not in message and ("result" in message or "error" in message):
            return None
        return self._act(message)

    def _act(self, message: Mapping[str, JsonValue]) -> Action:
        method, request_id, params = message.get("method"), message.get("id"), message.get("params", {})
        if isinstance(method, str) and "id" not in message:
            return _on_notification(method, params)
        if isinstance(request_id, bool) or not isinstance(request_id, str | int) or not _is_encodable(request_id):
            return error_line(None, INVALID_REQUEST, "A request must have an 'id', a string or an integer")
        if not isinstance(method, str):
            return error_line(request_id, INVALID_REQUEST, "A request must have a 'method', which is a string")
        if not isinstance(params, dict):
            return error_line(request_id, INVALID_PARAMS, "'params' must be an object")
        return self._on_request(request_id, method, params)

    def _on_request(self, request_id: RequestId, method: str, params: Mapping[str, JsonValue]) -> Action:
        meta = params.get("_meta")
        version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
        if version is not None and version not in MODERN_VERSIONS:
            supported: JsonValue = [*MODERN_VERSIONS, *HANDSHAKE_VERSIONS]
            data: JsonValue = {"supported": supported, "requested": version}
            return error_line(request_id, UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)
        if method == "tools/call":
            return _call(request_id, params, modern=version is not None)
        result = self._result(method, params, modern=version is not None)
        if result is None:
            return error_line(request_id, METHOD_NOT_FOUND, "Method not found", method)
        return result_line(request_id, encode_json(result))

    def _result(self, method: str, params: Mapping[str, JsonValue], *, modern: bool) -> dict[str, JsonValue] | None:
        """Return the result of a request that needs no tool, or `None` if there is no such method."""
        if method == "tools/list":
            return {"tools": self._tools, **(_CACHEABLE if modern else {})}
        if method == "server/discover":
            return {"supportedVersions": list(MODERN_VERSIONS), "capabilities": _CAPABILITIES, **_CACHEABLE}
        if method == "initialize":
            version = params.get("protocolVersion")
            if version not in HANDSHAKE_VERSIONS:
                version = HANDSHAKE_VERSIONS[-1]
            return {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": SERVER_INFO}
        if method == "ping":
            return dict(_MODERN) if modern else {}
        return None


def _is_encodable(request_id: RequestId) -> bool:
    try:
        encode_json(request_id)
    except ValueError:
        return False
    return True


def _call(request_id: RequestId, params: Mapping[str, JsonValue], *, modern: bool) -> Action:
    name, arguments, meta = params.get("name"), params.get("arguments", {}), params.get("_meta")
    if not isinstance(name, str):
        return error_line(request_id, INVALID_PARAMS, "A call must have a 'name', which is a string")
    if not isinstance(arguments, dict):
        return error_line(request_id, INVALID_PARAMS, "'arguments' must be an object")
    call: dict[str, JsonValue] = {"name": name, "arguments": arguments}
    tool_use_id = meta.get(_TOOL_USE_ID_KEY) if isinstance(meta, dict) else None
    if isinstance(tool_use_id, str):
        call["tool_use_id"] = tool_use_id
    return CallFrame(request_id, call, modern)


def _on_notification(method: str, params: JsonValue) -> Action:
    request_id = params.get("requestId") if isinstance(params, dict) else None
    if method == "notifications/cancelled" and isinstance(request_id, str | int):
        return CancelFrame(request_id)
    return None


def mcp_tools(content: bytes) -> list[JsonValue]:
    """Return the tools in a schema file, in the MCP form.

    Raises:
        ValueError: The content is not a JSON array of tool schemas.
    """
    schemas = decode_json(content)
    if not isinstance(schemas, list):
        raise ValueError("it is not a JSON array")
    tools = [_mcp_tool(schema, index) for index, schema in enumerate(schemas)]
    encode_json(tools)  # fail at the start, not at the first `tools/list`
    return tools


def _mcp_tool(schema: JsonValue, index: int) -> JsonValue:
    if not isinstance(schema, dict):
        raise ValueError(f"entry {index} is not an object")
    name, description, input_schema = schema.get("name"), schema.get("description"), schema.get("input_schema")
    if not isinstance(name, str) or not isinstance(description, str) or not isinstance(input_schema, dict):
        raise ValueError(f"entry {index} lacks 'name', 'description' or 'input_schema'")
    # MCP clients refuse a schema without `"type": "object"`. Arguments are always an object.
    tool: dict[str, JsonValue] = {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", **input_schema},
    }
    tool.update((theirs, schema[ours]) for ours, theirs in _OPTIONAL.items() if ours in schema)
    return tool
