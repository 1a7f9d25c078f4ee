"""A request in the CLI's own loop: the conversation and tools that a process needs, and their form for the API.

The CLI calls a tool by the name `mcp__SERVER__TOOL`, so the model must get it under that name. All other fields about a
tool reach the API unchanged, unless the CLI also has own tools to describe. Pure functions.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import cast

from cc_types import JsonValue

from ..api.conversation import HistoryMessage, as_blocks, unfolded, without_cache_control
from ..api.failure import invalid
from ..api.request import MessagesRequest, system_texts
from ..context.request_context import RequestContext
from ..context.tools import ClaudeCodeTools, ToolServerKey
from .history import check_message, check_pairs, merged

__all__ = ["LoopRequest", "loop_request"]

_Object = dict[str, JsonValue]

# Fields that are not parameters: the CLI sends or places them by itself.
_CLI_FIELDS = frozenset({"cache_control", "messages", "model", "stream", "system"})

# The server for tools whose calls all end the answer.
_SERVER_NAME = "caller"

# Fields that the CLI sends to the API for an MCP server's tool.
_TOOL_FIELDS = frozenset({"cache_control", "description", "input_schema", "name", "type"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRequest(MessagesRequest):
    """A request whose tools the CLI calls by itself."""

    context: RequestContext
    messages: tuple[HistoryMessage, ...]
    """The conversation, which ends in the user message to answer."""
    tool_server: ToolServerKey | None
    """The request's tools that the CLI knows; None if there are none."""


def loop_request(fields: _Object, head: MessagesRequest, context: RequestContext) -> LoopRequest | None:
    """Parse a request body for the CLI's own loop; return None if the CLI calls none of the tools."""
    server = _tool_server(fields, context)
    if server is None and context.claude_code_tools is None:
        return None
    parameters: _Object = {
        name: value for name, value in fields.items() if name not in _CLI_FIELDS and value is not None
    }
    return LoopRequest(
        model=head.model,
        stream=head.stream,
        headers=head.headers,
        betas=head.betas,
        process_model=head.model,
        system=system_texts(fields.get("system")),
        extra_body=json.dumps(_with_cli_tools(parameters, server, context.claude_code_tools)),
        context=context,
        messages=_messages(cast("list[JsonValue]", fields["messages"]), server),
        tool_server=server,
    )


def _tool_server(fields: _Object, context: RequestContext) -> ToolServerKey | None:
    tools, claude_code_tools = context.tools, context.claude_code_tools
    described = fields.get("tools")
    if not isinstance(described, list) or not described:
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


def _messages(messages: Iterable[JsonValue], server: ToolServerKey | None) -> tuple[HistoryMessage, ...]:
    history = [_message(message, f"messages.{index}") for index, message in enumerate(messages)]
    flat = [part for message in history for part in unfolded(message)]
    parsed = merged([_with_cli_names(part, server) for part in flat] if server is not None else flat)
    check_pairs(parsed)
    if parsed[-1].role != "user":
        place = f"messages.{len(history) - 1}.role"
        raise invalid(f"{place}: Claude Code does not continue an answer that the caller has begun")
    return parsed


def _message(message: JsonValue, place: str) -> HistoryMessage:
    if not isinstance(message, dict):
        raise invalid(f"{place}: an object is required")
    role = message.get("role")
    if role not in ("assistant", "user"):
        raise invalid(f"{place}.role: must be 'user' or 'assistant' in Claude Code's own loop, not {role!r}")
    for name, value in message.items():
        if name not in ("content", "role") and value is not None:
            raise invalid(f"{place}.{name}: Claude Code does not carry this field")
    history = HistoryMessage(role, as_blocks(message.get("content"), f"{place}.content"))
    check_message(history, place)
    return history


def _with_cli_tools(
    parameters: _Object, server: ToolServerKey | None, claude_code_tools: ClaudeCodeTools | None
) -> _Object:
    """Give tools the CLI's names. A CLI with own tools describes all tools itself."""
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


def _with_cli_names(message: HistoryMessage, server: ToolServerKey) -> HistoryMessage:
    """Return a message in which calls to a server's tools have the CLI's names, as originally."""
    names = server.names()
    blocks = (
        _renamed(block, server) if block.get("type") == "tool_use" and block.get("name") in names else block
        for block in message.content
    )
    return HistoryMessage(message.role, tuple(blocks))


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
        raise invalid(f"{place}: {tool['name']!r} is also the name of a Claude Code tool that this request allows")
    for name, value in tool.items():
        if name not in _TOOL_FIELDS and value is not None:
            raise invalid(f"{place}.{name}: Claude Code does not carry this field beside tools of its own")
