"""A request whose tools the CLI knows: what it must know of them from its start, and what the API is told of them.

The CLI calls a tool by the name `mcp__SERVER__TOOL`, so the model must get it under that name. All else that the body
says of a tool reaches the API as it stands there. Pure functions.
"""

import json
from collections.abc import Collection, Iterable
from typing import cast

from cc_types import JsonValue

from .cli_tools import CLITools
from .conversation import Block, Message
from .failure import invalid
from .loop_answer import cli_name
from .tool_server import ToolServerKey

__all__ = ["renamed", "tool_server_key", "with_cli_names"]

_Object = dict[str, JsonValue]


def tool_server_key(fields: _Object, tools: CLITools | None) -> ToolServerKey | None:
    """What a process must know from its start to call `tools`; None if the request has none of them.

    Raises:
        APIError: A tool of the request is none that can be described to an MCP client, with status 400.
    """
    if tools is None:
        return None
    described = fields.get("tools")
    described = described if isinstance(described, list) else []
    listed = [_listed(tool, f"tools.{index}", tools) for index, tool in enumerate(described)]
    if not any(tool["name"] in tools.names for tool in listed):
        return None
    return ToolServerKey(tools.server_name, tools.transport, json.dumps(listed, sort_keys=True))


def renamed(parameters: _Object, server_name: str) -> _Object:
    """The parameters of a request, with the tools under the names that the CLI has for them."""
    changed = dict(parameters)
    if isinstance(tools := parameters.get("tools"), list):
        changed["tools"] = [_renamed(cast(_Object, tool), server_name) for tool in tools]
    choice = parameters.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "tool":
        changed["tool_choice"] = _renamed(choice, server_name)
    return changed


def with_cli_names(messages: Iterable[Message], server: ToolServerKey) -> list[Message]:
    """A conversation in which the calls of a server's tools have the CLI's names for them, as they had when made."""
    names = server.names()
    return [
        Message(message.role, tuple(_with_cli_name(block, names, server.name) for block in message.content))
        for message in messages
    ]


def _with_cli_name(block: Block, names: Collection[str], server_name: str) -> Block:
    is_one = block.get("type") == "tool_use" and block.get("name") in names
    return {**block, "name": cli_name(server_name, str(block["name"]))} if is_one else block


def _renamed(named: _Object, server_name: str) -> JsonValue:
    return {**named, "name": cli_name(server_name, str(named.get("name")))}


def _listed(tool: JsonValue, place: str, tools: CLITools) -> _Object:
    if not isinstance(tool, dict) or tool.get("type", "custom") not in ("custom", None):
        raise invalid(f"{place}: a tool of the API's own cannot stand beside tools that Claude Code calls by itself")
    name, schema = tool.get("name"), tool.get("input_schema")
    if not isinstance(name, str) or not isinstance(schema, dict):
        raise invalid(f"{place}: 'name' and 'input_schema' are required")
    return {
        "name": name,
        "description": str(tool.get("description") or ""),
        "input_schema": schema,
        "sequential": name in tools.sequential,
    }
