"""Messages in the form of the CLI's history: joined, and checked for content that it would change. Pure functions."""

import base64
import binascii
from collections.abc import Iterable, Sequence

from cc_types import JsonValue

from ..api.conversation import Block, HistoryMessage
from ..api.failure import invalid
from ..api.message import WHITESPACE, says_nothing

__all__ = ["check_message", "check_pairs", "merged"]

# Above these limits the CLI scales an image down. Only in PNG is the size near the beginning.
_MAX_IMAGE_BYTES = 512_000
_MAX_IMAGE_SIDE = 2000
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER_LENGTH = 32  # in base64: 24 bytes, with width and height in the last eight


def merged(messages: Iterable[HistoryMessage]) -> tuple[HistoryMessage, ...]:
    """Join adjacent messages with the same role, as the API does; the CLI would add line breaks."""
    result: list[HistoryMessage] = []
    for message in messages:
        if result and result[-1].role == message.role:
            message = HistoryMessage(message.role, (*result.pop().content, *message.content))
        result.append(message)
    return tuple(result)


def check_message(message: HistoryMessage, place: str) -> None:
    """Refuse a message that would not reach the API unchanged; `place` is its position in the request."""
    for index, block in enumerate(message.content):
        if reason := _in_block(message.role, block):
            raise invalid(f"{place}.content.{index}{reason}")
    if message.role == "assistant":
        if all(map(says_nothing, message.content)):
            raise invalid(f"{place}.content: Claude Code does not carry an answer with nothing but thinking and blanks")
        if missing := _calls_without_result(message):
            raise invalid(f"{place}.content: Claude Code does not carry a server tool's call without result: {missing}")


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
    match block.get("type"):
        case "text":
            return _in_text(role, block)
        case "image" if role == "user" and not _keeps_size(block.get("source")):
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
        return ".citations: Claude Code carries only web search citations back to the model"
    return None


def _in_result(block: Block) -> str | None:
    for index, part in enumerate(_list(block.get("content"))):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool_reference":
            return ".content: Claude Code does not carry tool references"
        if block.get("is_error") is True and kind != "text":
            return f'.content.{index}: all content must be type "text" if "is_error" is true'
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
    if missing := [call for call in calls if call not in results]:
        raise invalid(
            f"messages: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}"
            ". Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )


def _calls_without_result(message: HistoryMessage) -> str | None:
    answered = [block.get("tool_use_id") for block in message.content]
    calls = [block for block in message.content if block.get("type") in ("server_tool_use", "mcp_tool_use")]
    return next((str(call.get("id")) for call in calls if call.get("id") not in answered), None)


def _ids(message: HistoryMessage, kind: str, name: str) -> list[str]:
    return [str(block.get(name)) for block in message.content if block.get("type") == kind]


def _is_dropped(citation: JsonValue) -> bool:
    return isinstance(citation, dict) and citation.get("type") != "web_search_result_location"


def _keeps_size(source: JsonValue) -> bool:
    """Return true if an image is verifiably small enough for the CLI to leave it unchanged."""
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
