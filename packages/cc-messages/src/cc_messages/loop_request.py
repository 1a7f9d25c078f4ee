"""A request whose tools the CLI knows: what it must know of them from its start, and what the API is told of them.

The CLI calls a tool by the name `mcp__SERVER__TOOL`, so the model must get it under that name. All else that the body
says of a tool reaches the API as it stands there, unless the CLI has tools of its own to tell of, too. Pure functions.
"""

import json
from collections.abc import Collection, Iterable
from typing import cast

from cc_types import JsonValue

from .cli_tools import Beside
from .conversation import Block, Message
from .failure import invalid
from .own_tools import OwnTools
from .tool_server import ToolServerKey

__all__ = ["loop_parameters", "tool_server_key", "with_cli_names"]

_Object = dict[str, JsonValue]

# The server of tools whose calls all end the answer.
_SERVER_NAME = "caller"

# What the CLI tells the API of a tool of an MCP server.
_TOLD = frozenset({"cache_control", "description", "input_schema", "name", "type"})


def tool_server_key(fields: _Object, beside: Beside | None) -> ToolServerKey | None:
    """What a process must know of the request's tools from its start; None if the CLI need not know them.

    Raises:
        APIError: A tool of the request is none that can be described to an MCP client, with status 400.
    """
    tools = beside.tools if beside is not None else None
    own = beside.own if beside is not None else None
    described = fields.get("tools")
    if not isinstance(described, list) or not described or (tools is None and own is None):
        return None
    sequential = tools.sequential if tools is not None else frozenset[str]()
    listed = [_listed(tool, f"tools.{index}", sequential) for index, tool in enumerate(described)]
    if own is not None:
        for index, tool in enumerate(described):
            _check_beside_own(cast(_Object, tool), own, f"tools.{index}")
    names = frozenset[object](tool["name"] for tool in listed)
    text = json.dumps(listed, sort_keys=True)
    if tools is not None and names & tools.names:
        return ToolServerKey(tools.server_name, tools.transport, text)
    return ToolServerKey(_SERVER_NAME, "sdk", text, is_plain=True) if own is not None else None


def loop_parameters(parameters: _Object, server: ToolServerKey | None, own: OwnTools | None) -> _Object:
    """The parameters of a request that the CLI's loop answers, with the CLI's names for its tools.

    Beside tools of its own the CLI tells the API of all tools itself.
    """
    changed = dict(parameters)
    if own is not None:
        changed.pop("tools", None)
    if server is None:
        return changed
    if isinstance(tools := changed.get("tools"), list):
        changed["tools"] = [_renamed(cast(_Object, tool), server) for tool in tools]
    choice = changed.get("tool_choice")
    if isinstance(choice, dict) and choice.get("name") in server.names():
        changed["tool_choice"] = _renamed(choice, server)
    return changed


def with_cli_names(messages: Iterable[Message], server: ToolServerKey) -> list[Message]:
    """A conversation in which the calls of a server's tools have the CLI's names for them, as they had when made."""
    return [
        Message(message.role, tuple(_with_cli_name(block, server) for block in message.content)) for message in messages
    ]


def _with_cli_name(block: Block, server: ToolServerKey) -> Block:
    is_one = block.get("type") == "tool_use" and block.get("name") in server.names()
    return cast(Block, _renamed(block, server)) if is_one else block


def _renamed(named: _Object, server: ToolServerKey) -> JsonValue:
    return {**named, "name": server.cli_name(str(named.get("name")))}


def _listed(tool: JsonValue, place: str, sequential: Collection[str]) -> _Object:
    if not isinstance(tool, dict) or tool.get("type", "custom") not in ("custom", None):
        raise invalid(f"{place}: a tool of the API's own cannot stand beside tools that Claude Code calls by itself")
    name, schema = tool.get("name"), tool.get("input_schema")
    if not isinstance(name, str) or not isinstance(schema, dict):
        raise invalid(f"{place}: 'name' and 'input_schema' are required")
    return {
        "name": name,
        "description": str(tool.get("description") or ""),
        "input_schema": schema,
        "sequential": name in sequential,
    }


def _check_beside_own(tool: _Object, own: OwnTools, place: str) -> None:
    if tool["name"] in own.names:
        raise invalid(f"{place}: {tool['name']!r} is the name of a tool of Claude Code's that this request allows")
    for name, value in tool.items():
        if name not in _TOLD and value is not None:
            raise invalid(f"{place}.{name}: Claude Code does not carry this field beside tools of its own")
