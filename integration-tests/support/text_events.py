"""The events of the API for an answer with a text, for endpoints that a test serves byte for byte."""

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["USAGE", "sse", "text_events"]

USAGE = {"input_tokens": 9, "output_tokens": 1}


def text_events(text: str) -> list[dict[str, Any]]:
    """Return the events: the message, a block, the text in a single delta, and the ends of all three."""
    message: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": USAGE,
    }  # fmt: skip
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": USAGE},
        {"type": "message_stop"},
    ]


def sse(event: Mapping[str, Any]) -> bytes:
    """Return an event as the API sends it."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
