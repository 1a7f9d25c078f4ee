"""Server-sent events as JSON objects, and as bytes again. An event in an unusual form is kept as text."""

import json
from collections.abc import AsyncIterable, AsyncIterator
from typing import TypeAlias, cast

from ..api.events import encode_event, encode_json
from ..api.types import JsonObject

Event: TypeAlias = JsonObject | str
"""The data of a usual event, or the text of any other event."""

_BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")


async def event_blocks(stream: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the bytes of each event, and then the bytes after the last complete event."""
    buffer = b""
    async for data in stream:
        buffer += data
        while end := min((at + len(line) for line in _BLANK_LINES if (at := buffer.find(line)) >= 0), default=0):
            yield buffer[:end]
            buffer = buffer[end:]
    if buffer:
        yield buffer


def parse_event(block: bytes) -> Event:
    """Return the data if it is an object with the event name as type, otherwise the event as text."""
    text = block.decode(errors="replace")
    name, _, data = text.rstrip("\r\n").replace("\r\n", "\n").partition("\n")
    if not (name.startswith("event:") and data.startswith("data:")):
        return text
    parsed = parse_json(data.removeprefix("data:"))
    if not isinstance(parsed, dict):
        return text
    event = cast("JsonObject", parsed)
    return event if event.get("type") == name.removeprefix("event:").strip() else text


def parse_json(text: str) -> object:
    """Return the parsed text, or the text itself if it is not JSON that can be encoded again."""
    try:
        parsed: object = json.loads(text)
        encode_json(parsed)
    except ValueError:  # invalid JSON, or half of a surrogate pair
        return text
    return parsed


def encode_event_or_text(event: Event) -> bytes:
    """Return an event from `parse_event` as bytes. White space between JSON tokens is lost."""
    return event.encode() if isinstance(event, str) else encode_event(event)
