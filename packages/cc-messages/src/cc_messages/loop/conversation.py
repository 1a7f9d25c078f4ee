"""Messages in the form of the CLI's history. Pure functions."""

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cc_types import JsonValue

from ..api.failure import invalid
from ..api.message import WHITESPACE, says_nothing

__all__ = ["Block", "Message", "as_blocks", "check_message", "check_pairs", "merged", "without_cache_control"]

Block: TypeAlias = dict[str, JsonValue]

# Blocks that contain blocks: results and search results, and the source of a document.
_NESTING = ("content", "source")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: str
    content: tuple[Block, ...]

    def blocks(self) -> list[Block]:
        """Content without cache breakpoints: the CLI places its own, and the API allows four."""
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


def merged(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join adjacent messages of one role, as the API does; the CLI would add line breaks."""
    result: list[Message] = []
    for message in messages:
        if result and result[-1].role == message.role:
            message = Message(message.role, (*result.pop().content, *message.content))
        result.append(message)
    return tuple(result)


def without_cache_control(block: Block) -> Block:
    """Return a block without cache breakpoints, also in nested blocks.

    Tool data and tool schemas are unchanged, whatever their fields are called.
    """
    bare = {name: item for name, item in block.items() if name != "cache_control"}
    for name in _NESTING:
        match bare.get(name):
            case dict() as inner:
                bare[name] = without_cache_control(inner)
            case list() as items:
                bare[name] = [without_cache_control(item) if isinstance(item, dict) else item for item in items]
            case _:
                pass
    return bare


# Above these limits the CLI scales an image down. Only in PNG is the size near the beginning.
_MAX_IMAGE_BYTES = 512_000
_MAX_IMAGE_SIDE = 2000
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER_LENGTH = 32  # in base64: 24 bytes, with width and height in the last eight


def check_message(message: Message, place: str) -> None:
    """Refuse a message that would not reach the API unchanged; `place` is its position in the request."""
    for index, block in enumerate(message.content):
        if reason := _in_block(message.role, block):
            raise invalid(f"{place}.content.{index}{reason}")
    if message.role == "assistant":
        if all(map(says_nothing, message.content)):
            raise invalid(f"{place}.content: Claude Code does not carry an answer of nothing but thinking and blanks")
        if missing := _calls_without_result(message):
            raise invalid(f"{place}.content: Claude Code does not carry a server tool's call without result: {missing}")


def check_pairs(messages: Sequence[Message]) -> None:
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
    match block.get("type"):
        case "text":
            return _in_text(role, block)
        case "image" if role == "user" and not _is_left_alone(block.get("source")):
            return ".source: Claude Code's own loop carries images in base64 only as PNG, up to 2000 pixels and 512 kB"
        case "tool_use" if block.get("caller") not in (None, {"type": "direct"}):
            return ".caller: Claude Code carries only calls that the model made directly"
        case "tool_result":
            return _in_result(block)
        case _:
            return None


def _in_text(role: str, block: Block) -> str | None:
    text = block.get("text")
    if not isinstance(text, str):
        return ".text: a string is required"
    if not (text.strip(WHITESPACE) if role == "user" else text):
        return ".text: text content blocks must contain non-whitespace text"
    if any(_is_dropped(citation) for citation in _list(block.get("citations"))):
        return ".citations: Claude Code carries only citations of web searches back to the model"
    return None


def _in_result(block: Block) -> str | None:
    for index, part in enumerate(_list(block.get("content"))):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool_reference":
            return ".content: Claude Code does not carry tool references"
        if block.get("is_error") is True and kind != "text":
            return f'.content.{index}: all content must be type "text" if "is_error" is true'
    return None


def _check_results(calls: Sequence[str], message: Message) -> None:
    """Require exactly one answer to each call in the next message, and no other answers."""
    results = _ids(message, "tool_result", "tool_use_id")
    if unexpected := [call for call in results if call not in calls]:
        raise invalid(
            f"messages: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(unexpected)}. Each "
            "`tool_result` block must have a corresponding `tool_use` block in the previous message."
        )
    if len(set(results)) < len(results):
        raise invalid("messages: each `tool_use` must have a single result, but there are several for one id")
    if missing := [call for call in calls if call not in results]:
        raise invalid(
            f"messages: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}"
            ". Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )


def _calls_without_result(message: Message) -> str | None:
    answered = [block.get("tool_use_id") for block in message.content]
    calls = [block for block in message.content if block.get("type") in ("server_tool_use", "mcp_tool_use")]
    return next((str(call.get("id")) for call in calls if call.get("id") not in answered), None)


def _ids(message: Message, kind: str, name: str) -> list[str]:
    return [str(block.get(name)) for block in message.content if block.get("type") == kind]


def _is_dropped(citation: JsonValue) -> bool:
    return isinstance(citation, dict) and citation.get("type") != "web_search_result_location"


def _is_left_alone(source: JsonValue) -> bool:
    """Return True if an image is verifiably small enough for the CLI to leave it unchanged."""
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
    return header.startswith(_PNG_SIGNATURE) and 0 < width <= _MAX_IMAGE_SIDE and 0 < height <= _MAX_IMAGE_SIDE


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
