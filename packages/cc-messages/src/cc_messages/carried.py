"""What the API refuses and Claude Code would repair instead, refused before it can.

The CLI repairs conversations, because its own may have been cut off anywhere. So a request that the API would not take
could get an answer to another one; the error here says what the API would have said. What the API does take, and the
CLI would still change, goes past the CLI's history: see `verbatim.py`. Measured on CLI 2.1.329, block by block; what
is named in neither place reaches the API as it was written. Pure functions.
"""

import base64
import binascii
from collections.abc import Sequence

from cc_types import JsonValue

from .conversation import Block, Message
from .failure import invalid

__all__ = ["check_block", "check_conversation", "says_nothing"]

# What a JavaScript `trim()` takes away.
_WHITESPACE = (
    " \t\n\v\f\r\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
# The CLI's own word for an answer without content, which it drops like one.
_NO_CONTENT = frozenset({"", "(no content)"})
_THINKING = frozenset({"thinking", "redacted_thinking"})
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"RIFF": "image/webp",
}
_SIGNATURE_LENGTH = 16  # in base64: 12 bytes


def check_block(role: str, block: Block, place: str) -> None:
    """Refuse a block that the API refuses; `place` is where it stands in the request.

    Raises:
        APIError: With status 400.
    """
    match block.get("type"):
        case "text":
            _check_text(role, block, place)
        case "image":
            _check_image(block, place)
        case "tool_result":
            _check_result(block, place)
        case _:
            pass


def check_conversation(messages: Sequence[Message]) -> None:
    """Refuse a conversation whose parts do not belong together; neighbours of one role are one message already.

    Raises:
        APIError: With status 400.
    """
    seen: set[str] = set()
    open_calls: list[str] = []
    for message in messages:
        _check_results(open_calls, message)
        open_calls = _ids(message, "tool_use", "id")
        for call in open_calls:
            if call in seen:
                raise invalid(f"messages: `tool_use` ids must be unique, but {call!r} comes more than once")
            seen.add(call)


def says_nothing(block: Block) -> bool:
    """Whether a block of an answer counts as none: the CLI drops an answer that has no other."""
    if block.get("type") == "text":
        return str(block.get("text")).strip(_WHITESPACE) in _NO_CONTENT
    return block.get("type") in _THINKING


def _check_text(role: str, block: Block, place: str) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        raise invalid(f"{place}.text: a string is required")
    if not (text.strip(_WHITESPACE) if role == "user" else text):
        raise invalid(f"{place}.text: text content blocks must contain non-whitespace text")


def _check_image(block: Block, place: str) -> None:
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        return
    kind = _image_type(str(source.get("data", "")))
    if kind is None:
        raise invalid(f"{place}.source.data: not a PNG, JPEG, GIF or WebP image in base64")
    if kind != source.get("media_type"):
        raise invalid(f"{place}.source.media_type: the image is {kind}, not {source.get('media_type')}")


def _check_result(block: Block, place: str) -> None:
    for index, part in enumerate(_list(block.get("content"))):
        kind = part.get("type") if isinstance(part, dict) else None
        if block.get("is_error") is True and kind != "text":
            raise invalid(f'{place}.content.{index}: all content must be type "text" if "is_error" is true')


def _check_results(calls: Sequence[str], message: Message) -> None:
    """Each call must be answered once in the message after it, and nothing else may be."""
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


def _ids(message: Message, kind: str, name: str) -> list[str]:
    return [str(block.get(name)) for block in message.content if block.get("type") == kind]


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _image_type(data: str) -> str | None:
    try:
        start = base64.b64decode(data[:_SIGNATURE_LENGTH], validate=True)
    except (binascii.Error, ValueError):
        return None
    return next((kind for signature, kind in _SIGNATURES.items() if start.startswith(signature)), None)
