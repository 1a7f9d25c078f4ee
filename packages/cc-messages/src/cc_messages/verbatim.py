"""Conversations that go past the CLI's history, because the CLI would not carry them as they are.

Whatever stands in the extra body replaces what the CLI would have sent, `messages` included. So a conversation that
the CLI would repair or cannot hold goes there as a whole, exact to the block. The CLI is asked a prompt that the API
never gets, and forgets it when the answer is there; nothing stays in the process, so the next request of the same
conversation brings all of it again. Measured on CLI 2.1.329: some 8 ms more than a turn of a conversation that the
process holds, 50 ms more with 2 MB. Pure functions.
"""

import base64
import binascii
from collections.abc import Sequence

from cc_types import JsonValue

from .carried import says_nothing
from .conversation import Block, Message

__all__ = ["PROMPT", "as_parameter", "obstacle"]

PROMPT = Message("user", ({"type": "text", "text": "."},))
"""What the CLI is asked in place of the conversation."""

# Beyond these the CLI makes an image smaller. How large others than PNG are stands deeper in them.
_MAX_IMAGE_BYTES = 512_000
_MAX_IMAGE_SIDE = 2000
_PNG_HEADER_LENGTH = 32  # in base64: 24 bytes, with width and height in the last eight

# What can carry a cache breakpoint; empty texts and thinking cannot.
_CACHEABLE = frozenset({"document", "image", "search_result", "text", "tool_result"})


def obstacle(messages: Sequence[Message]) -> str | None:
    """Why the CLI's history cannot hold these messages, naming the place; None if it can."""
    for index, message in enumerate(messages):
        if message.role == "system":
            return f"messages.{index}.role: Claude Code's history has no system messages"
        if reason := _in_message(message):
            return f"messages.{index}.{reason}"
    if messages[-1].role != "user":
        return f"messages.{len(messages) - 1}.role: Claude Code does not continue an answer that the caller has begun"
    return None


def as_parameter(messages: Sequence[Message]) -> list[JsonValue]:
    """The messages as the API is to get them, with a cache breakpoint where the CLI places its own."""
    plain: list[JsonValue] = [_plain(message) for message in messages]
    last = next((index for index in reversed(range(len(messages))) if messages[index].role == "user"), None)
    if last is not None:
        blocks: list[JsonValue] = [*messages[last].blocks()]
        if isinstance(block := blocks[-1], dict) and block.get("type") in _CACHEABLE:
            blocks[-1] = {**block, "cache_control": {"type": "ephemeral"}}
            plain[last] = {"role": "user", "content": blocks}
    return plain


def _plain(message: Message) -> JsonValue:
    plain: dict[str, JsonValue] = {"role": message.role, "content": [*message.blocks()]}
    return plain if message.output_config is None else {**plain, "output_config": message.output_config}


def _in_message(message: Message) -> str | None:
    for index, block in enumerate(message.content):
        if reason := _in_block(message.role, block):
            return f"content.{index}{reason}"
    if message.role == "assistant":
        if all(says_nothing(block) for block in message.content):
            return "content: Claude Code does not carry an answer that is nothing but thinking and whitespace"
        if missing := _calls_without_result(message):
            return f"content: Claude Code does not carry a server tool's call without its result: {missing[0]}"
    return None


def _in_block(role: str, block: Block) -> str | None:
    match block.get("type"):
        case "text" if any(map(_is_dropped, _list(block.get("citations")))):
            return ".citations: Claude Code carries only citations of web searches back to the model"
        case "image" if role == "user" and not _is_left_alone(block.get("source")):
            return ": Claude Code makes large images smaller"
        case "tool_use" if block.get("caller") not in (None, {"type": "direct"}):
            return ".caller: Claude Code carries only calls that the model made directly"
        case "tool_result" if any(map(_is_reference, _list(block.get("content")))):
            return ".content: Claude Code does not carry tool references"
        case _:
            return None


def _calls_without_result(message: Message) -> list[str]:
    answered = [block.get("tool_use_id") for block in message.content]
    calls = [block for block in message.content if block.get("type") in ("server_tool_use", "mcp_tool_use")]
    return [str(call.get("id")) for call in calls if call.get("id") not in answered]


def _is_dropped(citation: JsonValue) -> bool:
    return isinstance(citation, dict) and citation.get("type") != "web_search_result_location"


def _is_reference(part: JsonValue) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_reference"


def _is_left_alone(source: JsonValue) -> bool:
    """Whether an image is small enough for the CLI to leave it as it is, and can be seen to be."""
    if not isinstance(source, dict) or source.get("type") != "base64":
        return True
    data = str(source.get("data", ""))
    if source.get("media_type") != "image/png" or len(data) * 3 // 4 > _MAX_IMAGE_BYTES:
        return False
    try:
        header = base64.b64decode(data[:_PNG_HEADER_LENGTH], validate=True)
    except (binascii.Error, ValueError):
        return False
    width, height = int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")
    return 0 < width <= _MAX_IMAGE_SIDE and 0 < height <= _MAX_IMAGE_SIDE


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
