"""A request's tools that the CLI calls, as the MCP server that a process needs for them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast

from cc_ipc import ToolSchema
from cc_session.internals import TOOL_META, check_server_name, mcp_name, split_mcp_name
from cc_types import JsonValue

__all__ = ["CLAUDE_CODE_SERVER", "ToolServerKey", "check_tool_server_name", "server_and_tool"]

CLAUDE_CODE_SERVER = "claude-code"
"""The server name for the CLI's own tools in answers."""


def check_tool_server_name(name: str) -> None:
    """Raise ValueError unless `name` can be an MCP server of the caller's tools."""
    check_server_name(name)
    if name == CLAUDE_CODE_SERVER:
        raise ValueError(f"{name!r} cannot be the name of an MCP server: answers name Claude Code's own tools so")


def server_and_tool(name: str) -> tuple[str, str]:
    """Return MCP server and tool of the CLI's name for a tool; its own tools have the server `claude-code`."""
    return split_mcp_name(name) or (CLAUDE_CODE_SERVER, name)


@dataclass(frozen=True, slots=True)
class ToolServerKey:
    """Name, transport and tools of an MCP server; two requests with equal keys can use one server."""

    name: str
    transport: Literal["stdio", "sdk"]
    tools: str
    """JSON text: a list of objects with `name`, `description`, `input_schema` and `sequential`."""
    is_plain: bool = False
    """True if the model gets the tools under their own names, not as `mcp__SERVER__TOOL`."""

    def cli_name(self, tool: str) -> str:
        """Return the tool name for the model."""
        return tool if self.is_plain else mcp_name(self.name, tool)

    def schemas(self) -> tuple[ToolSchema, ...]:
        """Return the tools as an MCP server lists them."""
        return _schemas(self.tools)

    def names(self) -> frozenset[str]:
        """Return the tool names."""
        return frozenset(schema["name"] for schema in self.schemas())


# Every request of an agent has the same tools, and needs them several times.
@lru_cache(maxsize=64)
def _schemas(tools: str) -> tuple[ToolSchema, ...]:
    return tuple(_schema(tool) for tool in cast("list[dict[str, JsonValue]]", json.loads(tools)))


def _schema(tool: Mapping[str, JsonValue]) -> ToolSchema:
    # The CLI runs calls to read-only tools in parallel, and others one after another.
    annotations: dict[str, JsonValue] = {"readOnlyHint": not tool["sequential"]}
    schema = {**tool, "annotations": annotations, "_meta": dict(TOOL_META)}
    del schema["sequential"]
    return cast("ToolSchema", schema)
