"""The API's streaming events, put together to the message they tell of, and written as server-sent events."""

import json
from typing import Any, cast

from pydantic_core import from_json

from cc_types import JsonValue

from .conversation import Block, Message

__all__ = ["Answer", "Event", "sse"]

Event = dict[str, Any]
"""One event of the Messages API's stream, as the API sent it."""

# What each kind of delta appends to which field of its block.
_APPENDED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class Answer:
    """The message of one response, growing as events are fed; the same for a streamed and for a whole answer."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: list[dict[str, Any]] = []
        self._json: dict[int, str] = {}
        self.is_complete = False
        """Whether the model has stopped by itself. The CLI also ends a stream that was cut, but gives no reason."""

    @property
    def has_begun(self) -> bool:
        """Whether the API has begun to answer."""
        return bool(self._message)

    @property
    def stop_reason(self) -> str | None:
        """Why the model stopped, once it is known."""
        return self._message.get("stop_reason")

    @property
    def usage(self) -> dict[str, JsonValue]:
        """What the message has used so far, as the API counts it."""
        return self._message.get("usage", {})

    def block(self, index: int) -> dict[str, Any]:
        """A block of the message, as far as it has come."""
        return self._blocks[index]

    def feed(self, event: Event) -> None:
        """Take the next event; kinds that are not known change nothing."""
        match event["type"]:
            case "message_start":
                self._message = {**event["message"]}
            case "content_block_start":
                self._blocks.append({**event["content_block"]})
            case "content_block_delta":
                self._delta(event["index"], event["delta"])
            case "content_block_stop":
                self._stop_block(event["index"])
            case "message_delta":
                self._end(event)
            case "message_stop":
                self.is_complete = self.stop_reason is not None
            case _:
                pass

    def as_json(self) -> dict[str, JsonValue]:
        """The message, as the API would have sent it in one piece."""
        return {**self._message, "content": [*self._blocks]}

    def as_history(self) -> Message:
        """The message, as a later request carries it. A text without characters is not accepted back by the API."""
        blocks = [block for block in self._blocks if not (block["type"] == "text" and not block["text"])]
        return Message("assistant", tuple(cast("list[Block]", blocks)))

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        block = self._blocks[index]
        kind = delta["type"]
        if kind == "input_json_delta":
            self._json[index] = self._json.get(index, "") + delta["partial_json"]
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        elif name := _APPENDED.get(kind):
            block[name] = block.get(name, "") + delta[name]

    def _stop_block(self, index: int) -> None:
        if text := self._json.pop(index, ""):
            self._blocks[index]["input"] = _parsed(text)

    def _end(self, event: Event) -> None:
        self._message |= event["delta"]
        self._message["usage"] = {**self._message.get("usage", {}), **event.get("usage", {})}
        for name in event.keys() - {"type", "delta", "usage"}:
            self._message[name] = event[name]


def sse(event: Event) -> bytes:
    """An event in the wire format of server-sent events."""
    return f"event: {event['type']}\ndata: {json.dumps(event, separators=(',', ':'))}\n\n".encode()


def _parsed(text: str) -> JsonValue:
    """A tool's input; of one that was cut off, what was complete, which is what the API's own client makes of it."""
    try:
        return from_json(text, allow_partial=True)
    except ValueError:
        # The form in which the API takes it back.
        return {"INVALID_JSON": text}
