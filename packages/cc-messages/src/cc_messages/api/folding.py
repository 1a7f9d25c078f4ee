"""Loops of many API calls, folded into one message, and unfolded. Pure functions.

The API has a form for server-side tools: `mcp_tool_use` and `mcp_tool_result` blocks in the model message. The CLI
loop answers in this form, and a later request has that message in its history.
"""

from collections.abc import Sequence
from typing import Any, cast

from cc_session.internals import mcp_name
from cc_types import JsonValue

from ..context import CLAUDE_CODE_SERVER
from .conversation import Block, HistoryMessage

# Calls that the API itself made at an MCP server have such ids, and stay unchanged.
_API_CALL_PREFIX = "mcptoolu_"

# The text block field with the original block that it replaces.
_ORIGINAL = "claude_code_block"


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
    """Return the messages of a folded loop, or the model message alone if it is not folded."""
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
    """Return a tool result of the CLI loop in its folded form."""
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
