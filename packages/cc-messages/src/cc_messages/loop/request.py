"""A request in the CLI loop: the conversation and tools that a process needs, and their form for the API.

The CLI calls a tool by the name `mcp__SERVER__TOOL`, so the model must get it under that name. All other fields about a
tool reach the API unchanged, unless the CLI also has own tools to describe. The conversation is checked for content
that the CLI history would change. Pure functions.
"""

import base64
import binascii
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import imagesize  # pyright: ignore[reportMissingTypeStubs] - typed in its source, without a marker

from cc_session.internals import Login
from cc_types import JsonValue

from ..api.conversation import Block, HistoryMessage, as_blocks, without_cache_control
from ..api.folding import unfolded
from ..api.request import MessagesRequest, parse_object, request_head, system_texts, whole_request
from ..api.response import WHITESPACE, invalid, says_nothing
from ..context import ClaudeCodeTools, RequestContext, ToolServerKey

_Object = dict[str, JsonValue]

# Fields that are not parameters: the CLI sends or places them by itself.
_CLI_FIELDS = frozenset({"cache_control", "messages", "model", "stream", "system"})

# All API calls of a process have its extra body, also those of sub-agents, and those of tools that search. But these
# fields are for answers of the agent itself, and the API refuses thinking where the CLI forces the call of a search.
_OWN_FIELDS = frozenset({"output_format", "stop_sequences", "tool_choice"})
_NOT_FOR_SEARCHES = frozenset({"output_config", "thinking"})
# Fields that another model may refuse.
_FOR_THE_MODEL = frozenset({"max_tokens", "output_config", "temperature", "thinking", "top_k", "top_p"})

# Tools that may start sub-agents.
_WITH_SUBAGENTS = frozenset({"Agent", "Skill", "Task"})

SEARCHES = ("WebFetch", "WebSearch")
"""Tools that call the API."""

CALLING_API = _WITH_SUBAGENTS.union(SEARCHES)
"""Tools that call the API, or may start sub-agents, which do. They run beside others."""

# The server for tools whose calls all end the answer.
_SERVER_NAME = "caller"

# Fields that the CLI sends to the API for an MCP server tool.
_TOOL_FIELDS = frozenset({"cache_control", "description", "input_schema", "name", "type"})

# All that the CLI keeps of a call, or of an image in base64.
_CARRIED_FIELDS = frozenset({"cache_control", "caller", "id", "input", "name", "source", "type"})

# Above these limits the CLI scales an image down; by patches, in which newer models see it, for these models only.
_MAX_IMAGE_BYTES = 512_000
_MAX_IMAGE_SIDE = 2000
_MAX_IMAGE_PATCHES = 4784
_PATCH_SIDE = 28
_IMAGE_BEGINNINGS = {
    "image/gif": b"GIF8",
    "image/jpeg": b"\xff\xd8\xff",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/webp": b"RIFF",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRequest(MessagesRequest):
    """A request whose tools the CLI calls by itself."""

    context: RequestContext
    messages: tuple[HistoryMessage, ...]
    """The conversation, which ends in the user message to answer."""
    tool_server: ToolServerKey | None
    """The request tools that the CLI knows; None if there are none."""
    subagent_body: str
    """Extra body while sub-agents run."""
    search_body: str
    """Extra body while a tool searches."""

    @property
    def changes_body(self) -> bool:
        """True if the request allows tools that need another extra body."""
        return self.extra_body != self.subagent_body or self.extra_body != self.search_body


def parse_request(
    body: bytes,
    betas: str = "",
    context: RequestContext | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    login: Login = Login.API_KEY,
    places_breakpoints: bool = False,
) -> MessagesRequest:
    """Parse a request; return a `LoopRequest` if the CLI calls some tools by itself.

    `betas` is the `anthropic-beta` header, `headers` are variables with other headers for the API. With
    `places_breakpoints` a request without cache breakpoints gets some.
    """
    try:
        fields = parse_object(body)
        head = request_head(fields, betas, headers or {}, context)
        loop = None if context is None else _loop_request(fields, head, context)
        return loop or whole_request(fields, head, login, places_breakpoints=places_breakpoints)
    except RecursionError as error:
        raise invalid("The request body is nested too deeply") from error


def _loop_request(fields: _Object, head: MessagesRequest, context: RequestContext) -> LoopRequest | None:
    """Return the request for the CLI loop; None if the CLI calls none of the tools."""
    if context.tools is None and context.claude_code_tools is None:
        return None
    server = _tool_server(fields, context)
    if server is None and context.claude_code_tools is None:
        return None
    parameters: _Object = {
        name: value for name, value in fields.items() if name not in _CLI_FIELDS and value is not None
    }
    own_tools = context.claude_code_tools
    parameters = _with_cli_tools(parameters, server, own_tools)
    agents, own_names = ([], []) if own_tools is None else ([*own_tools.agents.values()], own_tools.names)
    for_subagents = _for_subagents(parameters, {agent.model or "inherit" for agent in agents})
    for_searches = {name: value for name, value in for_subagents.items() if name not in _NOT_FOR_SEARCHES}
    has_subagents, has_searches = (not names.isdisjoint(own_names) for names in (_WITH_SUBAGENTS, {*SEARCHES}))
    changes_body = has_subagents and for_subagents != parameters or has_searches and for_searches != parameters
    extra_body = json.dumps(parameters)
    return LoopRequest(
        model=head.model,
        stream=head.stream,
        headers=head.headers,
        betas=head.betas,
        process_model=head.model,
        system=system_texts(fields.get("system")),
        extra_body=extra_body,
        context=context,
        messages=_messages(cast("list[JsonValue]", fields["messages"]), server),
        tool_server=server,
        subagent_body=json.dumps(for_subagents) if changes_body else extra_body,
        search_body=json.dumps(for_searches) if changes_body else extra_body,
    )


def _for_subagents(parameters: _Object, models: set[str]) -> _Object:
    """Return the parameters for sub-agents, some of which have these models."""
    left_out = _OWN_FIELDS | _FOR_THE_MODEL if models - {"inherit"} else _OWN_FIELDS
    kept = {name: value for name, value in parameters.items() if name not in left_out}
    if isinstance(config := kept.get("output_config"), dict):
        kept["output_config"] = {name: value for name, value in config.items() if name != "format"}
    return {name: value for name, value in kept.items() if value != {}}


def _tool_server(fields: _Object, context: RequestContext) -> ToolServerKey | None:
    tools, claude_code_tools = context.tools, context.claude_code_tools
    described = fields.get("tools")
    if not isinstance(described, list) or not described:
        return None
    listed = [_listed(tool, f"tools.{index}", context) for index, tool in enumerate(described)]
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
    """Return a message, unless it would not reach the API unchanged; `place` is the position in the request."""
    if not isinstance(message, dict):
        raise invalid(f"{place}: an object is required")
    role = message.get("role")
    if role not in ("assistant", "system", "user"):
        raise invalid(f"{place}.role: must be 'user', 'assistant' or 'system', not {role!r}")
    for name, value in message.items():
        if name not in ("content", "role") and value is not None:
            raise invalid(f"{place}.{name}: Claude Code does not carry this field")
    history = HistoryMessage(role, as_blocks(message.get("content"), f"{place}.content"))
    for index, block in enumerate(history.content):
        if reason := _in_block(role, block):
            raise invalid(f"{place}.content.{index}{reason}")
    if role == "system":  # the CLI history has the roles of the conversation alone
        return HistoryMessage("user", tuple(_in_system_tag(block, place) for block in history.content))
    if role == "assistant":
        if all(map(says_nothing, history.content)):
            raise invalid(f"{place}.content: Claude Code does not carry an answer with nothing but thinking and blanks")
        answered = [block.get("tool_use_id") for block in history.content]
        calls = [block.get("id") for block in history.content if block["type"] in ("server_tool_use", "mcp_tool_use")]
        if missing_calls := [call for call in calls if call not in answered]:
            message = f"Claude Code does not carry a server tool's call without result: {missing_calls[0]}"
            raise invalid(f"{place}.content: {message}")
    return history


def _in_system_tag(block: Block, place: str) -> Block:
    """Return a text of a system message in the form that pydantic-ai has for models without such messages."""
    if block.get("type") != "text":
        raise invalid(f"{place}.content: Claude Code's own loop carries only texts in system messages")
    return {**block, "text": f"<system>\n{block['text']}\n</system>"}


def _with_cli_tools(
    parameters: _Object, server: ToolServerKey | None, claude_code_tools: ClaudeCodeTools | None
) -> _Object:
    """Give tools the CLI names. A CLI with own tools describes all tools itself."""
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
    """Return a message in which calls to a server's tools have the CLI names, as originally."""
    names = server.names()
    blocks = (
        _renamed(block, server) if block.get("type") == "tool_use" and block.get("name") in names else block
        for block in message.content
    )
    return HistoryMessage(message.role, tuple(blocks))


def _renamed(named: _Object, server: ToolServerKey) -> _Object:
    return {**named, "name": server.cli_name(str(named.get("name")))}


def _listed(tool: JsonValue, place: str, context: RequestContext) -> _Object:
    if not isinstance(tool, dict) or tool.get("type", "custom") not in ("custom", None):
        raise invalid(f"{place}: a tool of the API's own cannot stand beside tools that Claude Code calls by itself")
    name, schema = tool.get("name"), tool.get("input_schema")
    if not isinstance(name, str) or not isinstance(schema, dict):
        raise invalid(f"{place}: 'name' and 'input_schema' are required")
    if context.claude_code_tools is not None:
        if name in context.claude_code_tools.names:
            raise invalid(f"{place}: {name!r} is also the name of a Claude Code tool that this request allows")
        for field, value in tool.items():
            if field not in _TOOL_FIELDS and value is not None:
                raise invalid(f"{place}.{field}: Claude Code does not carry this field beside tools of its own")
    sequential = context.tools is not None and name in context.tools.sequential
    description = str(tool.get("description") or "")
    return {"name": name, "description": description, "input_schema": schema, "sequential": sequential}


def merged(messages: Iterable[HistoryMessage]) -> tuple[HistoryMessage, ...]:
    """Join adjacent messages with the same role, as the API does; the CLI would add line breaks."""
    result: list[HistoryMessage] = []
    for message in messages:
        if result and result[-1].role == message.role:
            message = HistoryMessage(message.role, (*result.pop().content, *message.content))
        result.append(message)
    return tuple(result)


def check_pairs(messages: Sequence[HistoryMessage]) -> None:
    """Refuse a conversation with mismatched calls and results."""
    seen: set[str] = set()
    open_calls: list[str] = []
    for message in messages:
        _check_results(open_calls, message)
        open_calls = _ids(message, "tool_use", "id")
        for call in open_calls:
            if call in seen:
                raise invalid(f"messages: `tool_use` ids must be unique, but {call!r} comes more than once")
            seen.add(call)


def _in_block(role: str, block: Block) -> str | None:
    match block:
        case {"type": "text"} if not isinstance(block.get("text"), str):
            return ".text: a string is required"
        case {"type": "text", "text": str(text)} if not (text if role == "assistant" else text.strip(WHITESPACE)):
            return ".text: text content blocks must contain non-whitespace text"
        case {"type": "text", "citations": [*citations]} if any(map(_is_dropped, citations)):
            return ".citations: Claude Code carries only web search citations back to the model"
        case {"type": "image"} if role == "user" and not keeps_size(block.get("source")):
            return (
                ".source: Claude Code's own loop carries images in base64 up to 2000 pixels, 3.7 megapixels and 512 kB"
            )
        case {"type": "tool_use", "caller": caller} if caller not in (None, {"type": "direct"}):
            return ".caller: Claude Code carries only calls that the model made directly"
        case {"type": "image", "source": {"type": "base64"}} | {"type": "tool_use"} if names := _lost_fields(block):
            return f".{names[0]}: Claude Code does not carry this field"
        case {"type": "advisor_tool_result"} | {"type": "server_tool_use", "name": "advisor"}:
            return ": Claude Code does not carry calls of the advisor"
        case {"type": "tool_result", "content": [*parts]}:
            for index, part in enumerate(parts):
                kind = part.get("type") if isinstance(part, dict) else None
                if kind == "tool_reference":
                    return ".content: Claude Code does not carry tool references"
                if block.get("is_error") is True and kind != "text":
                    return f'.content.{index}: all content must be type "text" if "is_error" is true'
        case _:
            pass
    return None


def _check_results(calls: Sequence[str], message: HistoryMessage) -> None:
    """Require exactly one answer to each call in the next message, and no other answers."""
    results = _ids(message, "tool_result", "tool_use_id")
    if unexpected := [call for call in results if call not in calls]:
        raise invalid(
            f"messages: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(unexpected)}. Each "
            "`tool_result` block must have a corresponding `tool_use` block in the previous message."
        )
    if len(set(results)) < len(results):
        raise invalid("messages: each `tool_use` must have a single result, but there are several for one id")
    if unmet := [call for call in calls if call not in results]:
        raise invalid(
            f"messages: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(unmet)}"
            ". Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )


def _ids(message: HistoryMessage, kind: str, name: str) -> list[str]:
    return [str(block.get(name)) for block in message.content if block.get("type") == kind]


def _lost_fields(block: Block) -> list[str]:
    return [name for name, value in block.items() if value and name not in _CARRIED_FIELDS]


def _is_dropped(citation: JsonValue) -> bool:
    return isinstance(citation, dict) and citation.get("type") != "web_search_result_location"


def keeps_size(source: JsonValue) -> bool:
    """Return true if an image is verifiably small enough for the CLI to leave it unchanged."""
    if not isinstance(source, dict) or source.get("type") != "base64":
        return True
    data, beginning = str(source.get("data", "")), _IMAGE_BEGINNINGS.get(str(source.get("media_type")))
    if beginning is None or len(data) * 3 // 4 > _MAX_IMAGE_BYTES:
        return False
    try:
        image = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    width, height = imagesize.get(io.BytesIO(image))  # pyright: ignore[reportUnknownMemberType]
    patches = math.ceil(width / _PATCH_SIDE) * math.ceil(height / _PATCH_SIDE)
    is_small = 0 < min(width, height) and max(width, height) <= _MAX_IMAGE_SIDE and patches <= _MAX_IMAGE_PATCHES
    return image.startswith(beginning) and is_small
