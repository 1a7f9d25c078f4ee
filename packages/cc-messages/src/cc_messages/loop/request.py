"""A request with tools that the CLI knows: the data that it needs at its start, and their form for the API.

The CLI calls a tool by the name `mcp__SERVER__TOOL`, so the model must get it under that name. Everything else that the
body has about a tool reaches the API unchanged, unless the CLI also has tools of its own to describe. Pure functions.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import cast

from cc_types import JsonValue

from ..api.failure import invalid
from .answer import unfolded
from .claude_code_tools import ClaudeCodeTools
from .cli_tools import RequestContext, ToolServerKey
from .conversation import Block, Message, as_blocks, check_message, check_pairs, merged, without_cache_control

__all__ = ["LoopRequest", "loop_request"]

_Object = dict[str, JsonValue]

# Fields that are not parameters: the CLI sends or places them by itself.
_OF_THE_CLI = frozenset({"cache_control", "messages", "model", "stream", "system"})

# The server of tools whose calls all end the answer.
_SERVER_NAME = "caller"

# The fields that the CLI sends to the API for a tool of an MCP server.
_TOLD = frozenset({"cache_control", "description", "input_schema", "name", "type"})


@dataclass(frozen=True, slots=True)
class LoopRequest:
    """The conversation, which ends in the user message to answer, and the tools."""

    messages: tuple[Message, ...]
    parameters: _Object
    """The fields of the body for the API, besides the conversation."""
    tool_server: ToolServerKey | None
    """The tools of the request that the CLI knows; None if it knows none."""
    claude_code_tools: ClaudeCodeTools | None
    """The CLI's own tools; None if it has none."""


def loop_request(fields: _Object, context: RequestContext | None) -> LoopRequest | None:
    """Parse a request's body for the CLI's loop; return None if the caller owns the loop."""
    server = _tool_server(fields, context)
    claude_code_tools = context.claude_code_tools if context is not None else None
    if server is None and claude_code_tools is None:
        return None
    messages = _messages(cast("list[JsonValue]", fields["messages"]), server)
    parameters: _Object = {
        name: value for name, value in fields.items() if name not in _OF_THE_CLI and value is not None
    }
    return LoopRequest(messages, _with_cli_tools(parameters, server, claude_code_tools), server, claude_code_tools)


def _tool_server(fields: _Object, context: RequestContext | None) -> ToolServerKey | None:
    tools = context.tools if context is not None else None
    claude_code_tools = context.claude_code_tools if context is not None else None
    described = fields.get("tools")
    if not isinstance(described, list) or not described or (tools is None and claude_code_tools is None):
        return None
    sequential = tools.sequential if tools is not None else frozenset[str]()
    listed = [_listed(tool, f"tools.{index}", sequential) for index, tool in enumerate(described)]
    if claude_code_tools is not None:
        for index, tool in enumerate(described):
            _check_other_tool(cast(_Object, tool), claude_code_tools, f"tools.{index}")
    names = frozenset[object](tool["name"] for tool in listed)
    text = json.dumps(listed, sort_keys=True)
    if tools is not None and names & tools.names:
        return ToolServerKey(tools.server_name, tools.transport, text)
    return ToolServerKey(_SERVER_NAME, "sdk", text, is_plain=True) if claude_code_tools is not None else None


def _messages(messages: Iterable[JsonValue], server: ToolServerKey | None) -> tuple[Message, ...]:
    read = [_message(message, f"messages.{index}") for index, message in enumerate(messages)]
    flat = [part for message in read for part in unfolded(message)]
    parsed = merged(_with_cli_names(flat, server) if server is not None else flat)
    check_pairs(parsed)
    if parsed[-1].role != "user":
        place = f"messages.{len(read) - 1}.role"
        raise invalid(f"{place}: Claude Code does not continue an answer that the caller has begun")
    return parsed


def _message(message: JsonValue, place: str) -> Message:
    if not isinstance(message, dict):
        raise invalid(f"{place}: an object is required")
    role = message.get("role")
    if role not in ("assistant", "user"):
        raise invalid(f"{place}.role: must be 'user' or 'assistant' in Claude Code's own loop, not {role!r}")
    for name, value in message.items():
        if name not in ("content", "role") and value is not None:
            raise invalid(f"{place}.{name}: Claude Code does not carry this field")
    read = Message(role, as_blocks(message.get("content"), f"{place}.content"))
    check_message(read, place)
    return read


def _with_cli_tools(
    parameters: _Object, server: ToolServerKey | None, claude_code_tools: ClaudeCodeTools | None
) -> _Object:
    """Give tools the CLI's names. If the CLI has tools of its own, it describes all tools itself."""
    changed = dict(parameters)
    if claude_code_tools is not None:
        changed.pop("tools", None)
    if server is None:
        return changed
    if isinstance(tools := changed.get("tools"), list):
        changed["tools"] = [without_cache_control(_renamed(cast(_Object, tool), server)) for tool in tools]
    choice = changed.get("tool_choice")
    if isinstance(choice, dict) and choice.get("name") in server.names():
        changed["tool_choice"] = _renamed(choice, server)
    return changed


def _with_cli_names(messages: Iterable[Message], server: ToolServerKey) -> list[Message]:
    """Return a conversation in which the calls of a server's tools have the CLI's names, as originally."""
    return [
        Message(message.role, tuple(_with_cli_name(block, server) for block in message.content)) for message in messages
    ]


def _with_cli_name(block: Block, server: ToolServerKey) -> Block:
    is_one = block.get("type") == "tool_use" and block.get("name") in server.names()
    return _renamed(block, server) if is_one else block


def _renamed(named: _Object, server: ToolServerKey) -> _Object:
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


def _check_other_tool(tool: _Object, claude_code_tools: ClaudeCodeTools, place: str) -> None:
    if tool["name"] in claude_code_tools.names:
        raise invalid(f"{place}: {tool['name']!r} is the name of a tool of Claude Code's that this request allows")
    for name, value in tool.items():
        if name not in _TOLD and value is not None:
            raise invalid(f"{place}.{name}: Claude Code does not carry this field beside tools of its own")
