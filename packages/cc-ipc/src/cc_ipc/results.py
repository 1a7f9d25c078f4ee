"""Validation of tool results: a result in MCP's form, or an error that names the invalid field.

An MCP client drops a message that it cannot validate, and the call then hangs; an error can be read by the model. No
valid part is dropped.
"""

from collections.abc import Mapping
from typing import cast

from .errors import InvalidToolResultError
from .messages import ToolResult

# MCP's kinds of content, and the text fields that a client requires.
_TEXT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}


def validate_result(value: object) -> ToolResult:
    """Return a handler's value as a tool result with all fields.

    A result without content gets an empty text, because the protocol requires a block. `is_error`, the spelling for the
    SDK's own tools, becomes `isError`.

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
    _check_extras(fields)
    return cast("ToolResult", fields)


def _check_extras(fields: Mapping[str, object]) -> None:
    if not isinstance(fields["isError"], bool):
        raise InvalidToolResultError(reason="its 'isError' is neither true nor false")
    if not isinstance(fields.get("structuredContent", {}), Mapping):
        raise InvalidToolResultError(reason="its 'structuredContent' is not an object")


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
