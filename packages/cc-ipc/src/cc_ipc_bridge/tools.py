"""Conversion from the schema file to MCP's tool list."""

from __future__ import annotations

import os

from .payload import decode_json, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cc_types import JsonValue

# Optional fields in a `ToolSchema`, and MCP's names for them.
_OPTIONAL = {"title": "title", "output_schema": "outputSchema", "annotations": "annotations", "_meta": "_meta"}

_READ_SIZE = 1 << 16


def read_all(fd: int) -> bytes:
    """Return the content of an open file."""
    parts: list[bytes] = []
    while part := os.read(fd, _READ_SIZE):
        parts.append(part)
    return b"".join(parts)


def mcp_tools(content: bytes) -> list[JsonValue]:
    """Return the tools in a schema file, in MCP's form.

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
