"""The API's streaming events, joined into their message, and written as server-sent events."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json, to_json

from cc_types import JsonValue

from .failure import UnreadableEventError

__all__ = ["WHITESPACE", "Answer", "Event", "says_nothing", "sse"]

Event = dict[str, Any]
"""An event in the Messages API's stream, as the API sent it."""

WHITESPACE = (
    " \t\n\v\f\r\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that JavaScript's `trim()` removes."""
# The CLI's own text for an empty answer, dropped like one.
_NO_CONTENT = frozenset({"", "(no content)"})
_THINKING = frozenset({"thinking", "redacted_thinking"})

# Estimates the output if an answer broke off before the API counted it.
_CHARACTERS_PER_TOKEN = 4

# A tool's input, in pieces of JSON.
_JSON = "partial_json"
# The appended field for each kind of delta: also the block's field name, except for JSON.
_APPENDED = {
    "text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "input_json_delta": _JSON,
}  # fmt: skip
# Event types with a form that is checked.
_KINDS = frozenset(
    {"content_block_delta", "content_block_start", "content_block_stop", "message_delta", "message_start"}
)


class Answer:
    """A response's message, built from events; the same for a streamed and for a whole answer."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: list[dict[str, Any]] = []
        # By block and field; joined when the block is read, not with every delta.
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._characters = 0
        self.is_complete: bool = False
        """True if the model stopped by itself. The CLI also ends a stream that was cut, but gives no reason."""

    @property
    def has_begun(self) -> bool:
        """True if the API has begun to answer."""
        return bool(self._message)

    @property
    def stop_reason(self) -> str | None:
        """The model's stop reason, if known."""
        return self._message.get("stop_reason")

    @property
    def usage(self) -> dict[str, JsonValue]:
        """Usage so far, as the API counts it."""
        return self._message.get("usage", {})

    @property
    def billed(self) -> dict[str, JsonValue]:
        """The message without its content, as far as the API has counted it.

        It counts the output at the end. If that is missing, `output_tokens` is estimated: four characters are a token.
        """
        if not self._message or self.stop_reason is not None:
            return {**self._message}
        counted = self.usage.get("output_tokens")
        output = max(counted if isinstance(counted, int) else 0, self._characters // _CHARACTERS_PER_TOKEN)
        return {**self._message, "usage": {**self.usage, "output_tokens": output}}

    def block(self, index: int) -> dict[str, Any]:
        """Return a block as received so far."""
        self._join()
        return self._blocks[index]

    def feed(self, event: Event) -> None:
        """Process the next event; unknown kinds are ignored."""
        if not self._is_readable(event):
            raise UnreadableEventError(event)
        match event["type"]:
            case "message_start":
                self._message = {**event["message"]}
            case "content_block_start":
                self._blocks.append({**event["content_block"]})
                match event["content_block"]:
                    case {"type": "fallback", "to": {"model": str(model)}}:
                        self._message["model"] = model
                    case _:
                        pass
            case "content_block_delta":
                self._delta(event["index"], event["delta"])
            case "content_block_stop":
                if text := "".join(self._pieces.pop((event["index"], _JSON), ())):
                    self._blocks[event["index"]]["input"] = _parsed(text)
            case "message_delta":
                self._end(event)
            case "message_stop":
                self.is_complete = self.stop_reason is not None
            case _:
                pass

    def _is_readable(self, event: Event) -> bool:
        count = len(self._blocks)
        match event:
            case {"type": "message_start", "message": {**message}}:
                return isinstance(message.get("usage", {}), dict)
            case {"type": "content_block_start", "index": index, "content_block": {"type": str()}}:
                return index == count and self.has_begun
            case {"type": "content_block_delta", "index": int(index), "delta": {"type": str(kind), **delta}}:
                return 0 <= index < count and isinstance(delta.get(_APPENDED.get(kind, ""), ""), str)
            case {"type": "content_block_stop", "index": int(index)}:
                return 0 <= index < count
            case {"type": "message_delta", "delta": {}, **others}:
                return isinstance(others.get("usage", {}), dict)
            case {"type": str(kind)}:
                return kind not in _KINDS
            case _:
                return False

    def as_json(self) -> dict[str, JsonValue]:
        """Return the message as the API would have sent it without streaming."""
        self._join()
        return {**self._message, "content": [*self._blocks]}

    @property
    def content(self) -> list[dict[str, JsonValue]]:
        """Blocks in the form for a later request. The API does not accept an empty text back."""
        self._join()
        return [block for block in self._blocks if not (block["type"] == "text" and not block["text"])]

    @property
    def shows_something(self) -> bool:
        """True if the message contains more than thinking and whitespace."""
        return not all(map(says_nothing, self.content))

    @property
    def calls_tools(self) -> bool:
        """True if the message waits for tool results."""
        return any(block["type"] == "tool_use" for block in self._blocks)

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        kind, block = delta["type"], self._blocks[index]
        if name := _APPENDED.get(kind):
            self._pieces.setdefault((index, name), []).append(delta[name])
            self._characters += len(delta[name])
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        elif kind == "compaction_delta":  # the whole summary, not a piece of it
            block |= {name: value for name, value in delta.items() if name != "type"}

    def _join(self) -> None:
        for (index, name), pieces in self._pieces.items():
            if name != _JSON:
                block = self._blocks[index]
                block[name] = block.get(name, "") + "".join(pieces)
                pieces.clear()

    def _end(self, event: Event) -> None:
        self._message |= event["delta"]
        self._message["usage"] = {**self.usage, **event.get("usage", {})}
        for name in event.keys() - {"type", "delta", "usage"}:
            self._message[name] = event[name]


def says_nothing(block: Mapping[str, JsonValue]) -> bool:
    """Return True if a block counts as empty: the CLI drops an answer with only such blocks."""
    if block.get("type") == "text":
        return str(block.get("text")).strip(WHITESPACE) in _NO_CONTENT
    return block.get("type") in _THINKING


def sse(event: Event) -> bytes:
    """Return a server-sent event, in ASCII: some clients accept more than line feeds as line ends."""
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), _as_json(event))


def _as_json(event: Event) -> bytes:
    try:
        return to_json(event, ensure_ascii=True)
    except ValueError:  # half a surrogate pair
        return json.dumps(event, separators=(",", ":")).encode()


def _parsed(text: str) -> JsonValue:
    """Return a tool's input; if the JSON is truncated, the complete part, as the API's own client does."""
    try:
        return from_json(text, allow_partial=True)
    except ValueError:
        # The form in which the API accepts it back.
        return {"INVALID_JSON": text}
