"""Conversation messages and content blocks: cache breakpoints, and folded loops of many API calls. Pure functions.

Breakpoints for a request without any stand where Claude Code sets them, measured in bodies from CLI 2.1.329: at the
last system block, which covers the tools as well, and the last block in the last message. Without a system prompt, the
first breakpoint is at the last tool.

The API has a form for server-side tools: `mcp_tool_use` and `mcp_tool_result` blocks in the model's message. The CLI's
own loop answers in this form, and a later request has that message in its history.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from cc_session.internals import mcp_name
from cc_types import JsonValue

from ..context import CLAUDE_CODE_SERVER
from .response import invalid

Block: TypeAlias = dict[str, JsonValue]

# Fields with blocks inside a block: results and search results, and a document's source.
_NESTING = ("content", "source")

_BREAKPOINT: Block = {"type": "ephemeral"}

# The types that can carry a breakpoint; empty texts and thinking cannot.
_CACHEABLE = frozenset({"document", "image", "search_result", "text", "tool_result"})

# Calls that the API itself made at an MCP server have such ids, and stay unchanged.
_API_CALL_PREFIX = "mcptoolu_"

# The text block's field with the original block that it replaces.
_ORIGINAL = "claude_code_block"


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    """A message in a conversation."""

    role: str
    content: tuple[Block, ...]

    def blocks(self) -> list[Block]:
        """Return the content without cache breakpoints: the CLI places its own, and the API allows four."""
        return [without_cache_control(block) for block in self.content]


def as_blocks(content: JsonValue, place: str) -> tuple[Block, ...]:
    """Return a message's content as blocks."""
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    if not isinstance(content, list):
        raise invalid(f"{place}: a string or a list of content blocks is required")
    if not content:
        raise invalid(f"{place}: must not be empty")
    blocks: list[Block] = []
    for index, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise invalid(f"{place}.{index}: an object with a type is required")
        blocks.append(block)
    return tuple(blocks)


def without_cache_control(block: Block) -> Block:
    """Return a block without cache breakpoints, also in nested blocks; tool data and tool schemas are unchanged."""
    bare = {name: item for name, item in block.items() if name != "cache_control"}
    for name in _NESTING:
        if isinstance(nested := bare.get(name), dict):
            bare[name] = without_cache_control(nested)
        elif isinstance(nested, list):
            bare[name] = [without_cache_control(item) if isinstance(item, dict) else item for item in nested]
    return bare


def with_breakpoints(fields: Block, *, at_prompt: bool = True) -> Block:
    """Return the request body with breakpoints, also `at_prompt` or tools; a body that already has any is unchanged."""
    messages = _list(fields.get("messages"))
    contents = [message.get("content") for message in messages if isinstance(message, dict)]
    if _is_marked(fields) or any(map(_is_marked_in, (fields.get("tools"), fields.get("system"), *contents))):
        return fields
    changed = dict(fields)
    for name in ("system", "tools") if at_prompt else ():
        if fields.get(name):
            changed[name] = _marked_at_end(fields[name])
            break
    if messages and isinstance(last := messages[-1], dict) and last.get("role") == "user":
        changed["messages"] = [*messages[:-1], {**last, "content": _marked_at_end(last.get("content"))}]
    return changed


def _marked_at_end(content: JsonValue) -> JsonValue:
    """Return blocks or tools with a breakpoint at the last, if it can carry a breakpoint."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content.strip() else content
    if not isinstance(blocks, list) or not blocks or not isinstance(last := blocks[-1], dict):
        return content
    is_empty = last.get("type") == "text" and not str(last.get("text")).strip()
    if is_empty or not ("input_schema" in last or last.get("type") in _CACHEABLE):
        return content
    return cast(JsonValue, [*blocks[:-1], {**last, "cache_control": _BREAKPOINT}])


def _is_marked_in(content: JsonValue) -> bool:
    return any(isinstance(block, dict) and _is_marked(block) for block in _list(content))


def _is_marked(block: Mapping[str, JsonValue]) -> bool:
    return block.get("cache_control") is not None or _is_marked_in(block.get("content"))


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def unfolded_messages(messages: Sequence[JsonValue]) -> list[JsonValue]:
    """Return a request body's messages with all loops unfolded; other messages are unchanged."""
    result: list[JsonValue] = []
    for message in messages:
        match message:
            case {"role": "assistant", "content": [*blocks]} if any(map(_is_folded, blocks)):
                parts = unfolded(HistoryMessage("assistant", tuple(cast("list[Block]", blocks))))
                result.extend({"role": part.role, "content": [*part.content]} for part in parts)
            case _:
                result.append(message)
    return result


def unfolded(message: HistoryMessage) -> list[HistoryMessage]:
    """Return the loop's messages folded into a model message; the message itself if there is no loop in it."""
    if message.role != "assistant" or not any(map(_is_folded, message.content)):
        return [message]
    messages: list[HistoryMessage] = []
    answer: list[Block] = []
    results: list[Block] = []
    for block in message.content:
        if _is_folded(block) and block["type"] == "mcp_tool_result":
            results.append(_as_tool_result(block))
            continue
        if results:
            messages += [HistoryMessage("assistant", tuple(answer)), HistoryMessage("user", tuple(results))]
            answer, results = [], []
        if _is_folded(block):
            server, tool = str(block.get("server_name")), str(block.get("name"))
            name = tool if server == CLAUDE_CODE_SERVER else mcp_name(server, tool)
            block = {"type": "tool_use", "id": block.get("id"), "name": name, "input": block.get("input")}
        answer.append(block)
    messages.append(HistoryMessage("assistant", tuple(answer)))
    return [*messages, HistoryMessage("user", tuple(results))] if results else messages


def as_mcp_result(result: Block) -> dict[str, Any]:
    """Return a tool result of the CLI's loop in its folded form."""
    content = result.get("content") or []
    return {
        "type": "mcp_tool_result",
        "tool_use_id": result["tool_use_id"],
        "is_error": result.get("is_error") is True,
        "content": [_as_text(item) for item in content] if isinstance(content, list) else content,
    }


def _is_folded(block: JsonValue) -> bool:
    match block:
        case {"type": "mcp_tool_use", "id": identity} | {"type": "mcp_tool_result", "tool_use_id": identity}:
            return not str(identity).startswith(_API_CALL_PREFIX)
        case _:
            return False


def _as_tool_result(block: Block) -> Block:
    content = block.get("content")
    result: Block = {
        "type": "tool_result",
        "tool_use_id": block.get("tool_use_id"),
        "content": [_original(item) for item in content] if isinstance(content, list) else content,
    }
    return {**result, "is_error": True} if block.get("is_error") else result


def _as_text(item: JsonValue) -> JsonValue:
    """Return a result block as text, the only type that clients expect there; other blocks go along with it."""
    if not isinstance(item, dict) or item.get("type") == "text":
        return item
    return {"type": "text", "text": f"[{item.get('type')}]", _ORIGINAL: item}


def _original(item: JsonValue) -> JsonValue:
    if not isinstance(item, dict):
        return item
    # Clients write out all optional fields.
    return item.get(_ORIGINAL) or {name: value for name, value in item.items() if value is not None}
