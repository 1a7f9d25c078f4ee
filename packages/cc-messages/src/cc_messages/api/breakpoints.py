"""Cache breakpoints of a request without any, where Claude Code sets them.

Measured in bodies from CLI 2.1.329: at the last system block, which covers the tools as well, and the last block in the
last message. Without a system prompt, the first breakpoint is at the last tool.
"""

from collections.abc import Mapping
from typing import cast

from cc_types import JsonValue

from .conversation import Block

_BREAKPOINT: Block = {"type": "ephemeral"}

# The types that can carry a breakpoint; empty texts and thinking cannot.
_CACHEABLE = frozenset({"document", "image", "search_result", "text", "tool_result"})


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
    if messages and isinstance(last_message := messages[-1], dict) and last_message.get("role") == "user":
        changed["messages"] = [*messages[:-1], {**last_message, "content": _marked_at_end(last_message.get("content"))}]
    return changed


def _marked_at_end(content: JsonValue) -> JsonValue:
    """Return blocks or tools with a breakpoint at the last, if it can carry a breakpoint."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content.strip() else content
    if not isinstance(blocks, list) or not blocks or not isinstance(last_block := blocks[-1], dict):
        return content
    is_empty = last_block.get("type") == "text" and not str(last_block.get("text")).strip()
    if is_empty or not ("input_schema" in last_block or last_block.get("type") in _CACHEABLE):
        return content
    return cast(JsonValue, [*blocks[:-1], {**last_block, "cache_control": _BREAKPOINT}])


def _is_marked_in(content: JsonValue) -> bool:
    return any(isinstance(block, dict) and _is_marked(block) for block in _list(content))


def _is_marked(block: Mapping[str, JsonValue]) -> bool:
    return block.get("cache_control") is not None or _is_marked_in(block.get("content"))


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
