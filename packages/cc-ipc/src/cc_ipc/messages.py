"""The messages between bridge and parent: a request, and the result or an error; and the validation of results.

The types describe the JSON. Both sides ignore unknown fields, so that peers with different versions work together.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, NotRequired, TypeAlias, TypedDict, cast

from cc_types import JsonValue

from .errors import InvalidRequestError, InvalidToolResultError, IPCToolExecutionError, UnknownMethodError

CALL_TOOL = "call_tool"

# MCP's kinds of content, and the text fields that a client requires.
_TEXT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}

ToolHandler: TypeAlias = Callable[[dict[str, object]], Awaitable[dict[str, object]]]
"""Run a tool with its arguments and return a result in the MCP form: `{"content": [{"type": "text", "text": "…"}]}`."""


class ToolSchema(TypedDict):
    """A tool as the bridge lists it. The schema file is a JSON array with such objects."""

    name: str
    """Tool name."""
    description: str
    """Description for the model."""
    input_schema: dict[str, JsonValue]
    """JSON Schema for the arguments."""
    title: NotRequired[str]
    """Display name."""
    output_schema: NotRequired[dict[str, JsonValue]]
    """JSON Schema for `structuredContent` in results."""
    annotations: NotRequired[dict[str, JsonValue]]
    """MCP's hints. The CLI runs calls with `{"readOnlyHint": true}` in parallel, others one after another."""
    _meta: NotRequired[dict[str, JsonValue]]
    """The tool's `_meta` in MCP."""


class CallToolParams(TypedDict):
    """Parameters for a call."""

    name: str
    """A registered tool name."""
    arguments: dict[str, JsonValue]
    """Arguments that conform to the input schema."""
    tool_use_id: NotRequired[str]
    """The id of the call, from the model, if the host sent it."""


class IPCRequest(TypedDict):
    """The bridge request that the parent run a tool."""

    method: Literal["call_tool"]
    params: CallToolParams


class TextContent(TypedDict):
    """A text."""

    type: Literal["text"]
    text: str


class MediaContent(TypedDict):
    """An image or a sound, with bytes in base64."""

    type: Literal["image", "audio"]
    data: str
    mimeType: str


class EmbeddedResource(TypedDict):
    """A resource with content: `uri`, and `text` or `blob`."""

    type: Literal["resource"]
    resource: dict[str, JsonValue]


class ResourceLink(TypedDict):
    """A resource by URI."""

    type: Literal["resource_link"]
    uri: str
    name: str


ToolResultContent: TypeAlias = TextContent | MediaContent | EmbeddedResource | ResourceLink
"""A content block. MCP's optional fields, such as `annotations`, are kept."""


class ToolResult(TypedDict):
    """A call result, as in MCP."""

    content: list[ToolResultContent]
    """At least one block."""
    isError: NotRequired[bool]
    """True if the tool reports a failure. Default: False."""
    structuredContent: NotRequired[dict[str, JsonValue]]
    """The result as structured data."""


class IPCErrorPayload(TypedDict):
    """An error as data; the exception is `IPCError`."""

    message: str
    """The exception message."""
    type: str
    """The exception class name."""


class IPCErrorResponse(TypedDict):
    """The parent response to a call that could not be made, or whose tool raised."""

    error: IPCErrorPayload


def error_response(error_type: str, message: str) -> IPCErrorResponse:
    """Return the response that reports an exception."""
    return {"error": {"message": message, "type": error_type}}


def parse_request(message: "JsonValue") -> CallToolParams:
    """Return the call in a request.

    Raises:
        UnknownMethodError: The method is not `call_tool`.
        InvalidRequestError: The message is not a valid request.
    """
    if not isinstance(message, dict):
        raise InvalidRequestError(reason="a request is an object")
    method = message.get("method")
    if not isinstance(method, str):
        raise InvalidRequestError(reason="a request has a 'method', which is a string")
    if method != CALL_TOOL:
        raise UnknownMethodError(method=method)
    params = message.get("params")
    if not isinstance(params, dict):
        raise InvalidRequestError(reason="a request has 'params', which are an object")
    name, arguments, tool_use_id = params.get("name"), params.get("arguments"), params.get("tool_use_id")
    if not isinstance(name, str):
        raise InvalidRequestError(reason="'params' have a 'name', which is a string")
    if not isinstance(arguments, dict):
        raise InvalidRequestError(reason="'params' have 'arguments', which are an object")
    call: CallToolParams = {"name": name, "arguments": arguments}
    if isinstance(tool_use_id, str):
        call["tool_use_id"] = tool_use_id
    return call


def parse_response(message: "JsonValue", *, tool: str) -> ToolResult:
    """Return the result in a response to a call to `tool`.

    Raises:
        IPCToolExecutionError: The response is an error.
        InvalidRequestError: The message is not a valid response.
    """
    if not isinstance(message, dict) or ("result" in message) == ("error" in message):
        raise InvalidRequestError(reason="a response is an object with either 'result' or 'error'")
    if "error" in message:
        error = message["error"]
        payload: Mapping[str, JsonValue] = error if isinstance(error, dict) else {"message": error}
        kind, text = str(payload.get("type", "Exception")), str(payload.get("message", ""))
        raise IPCToolExecutionError(tool=tool, error_type=kind, message=text)
    result = message["result"]
    if not isinstance(result, dict) or not isinstance(result.get("content"), list):
        raise InvalidRequestError(reason="a 'result' is an object with 'content', which is a list")
    return cast("ToolResult", result)


def validate_result(value: object) -> ToolResult:
    """Return a handler's value as a tool result with all fields.

    A result without content gets an empty text, because the protocol requires a block. `is_error`, the spelling for the
    SDK tools, becomes `isError`. No valid part is dropped. An MCP client drops a message that it cannot validate,
    and the call then hangs; the model can read an error.

    Raises:
        InvalidToolResultError: The value is not a tool result.
    """
    if not isinstance(value, Mapping):
        raise InvalidToolResultError(reason=f"it is a {type(value).__name__}, not an object with 'content'")
    fields = dict(cast("Mapping[str, object]", value))
    content = fields.get("content")
    if not isinstance(content, list | tuple):
        raise InvalidToolResultError(reason=f"its 'content' is a {type(content).__name__}, not a list of blocks")
    blocks = list(cast("list[object]", content))
    for index, block in enumerate(blocks):
        _check_block(block, f"content[{index}]")
    fields["content"] = blocks or [{"type": "text", "text": ""}]
    fields.setdefault("isError", fields.pop("is_error", False))
    if not isinstance(fields["isError"], bool):
        raise InvalidToolResultError(reason="its 'isError' is neither true nor false")
    if not isinstance(fields.get("structuredContent", {}), Mapping):
        raise InvalidToolResultError(reason="its 'structuredContent' is not an object")
    return cast("ToolResult", fields)


def _check_block(block: object, where: str) -> None:
    if not isinstance(block, Mapping):
        raise InvalidToolResultError(reason=f"its {where} is a {type(block).__name__}, not a content block")
    fields = cast("Mapping[str, object]", block)
    kind = fields.get("type")
    if not isinstance(kind, str) or kind not in _TEXT_FIELDS:
        raise InvalidToolResultError(reason=f"its {where} has type {kind!r}, and MCP knows {', '.join(_TEXT_FIELDS)}")
    for name in _TEXT_FIELDS[kind]:
        _check_text(fields, name, where)
    if kind == "resource":
        _check_resource(fields.get("resource"), f"{where}.resource")


def _check_resource(resource: object, where: str) -> None:
    if not isinstance(resource, Mapping):
        raise InvalidToolResultError(reason=f"its {where} is not an object")
    fields = cast("Mapping[str, object]", resource)
    _check_text(fields, "uri", where)
    _check_text(fields, "text" if "text" in fields else "blob", where)


def _check_text(fields: Mapping[str, object], name: str, where: str) -> None:
    if not isinstance(fields.get(name), str):
        raise InvalidToolResultError(reason=f"its {where} lacks {name!r}, which is a string")
