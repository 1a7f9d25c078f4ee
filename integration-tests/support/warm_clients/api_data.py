"""Requests and answers of the Messages API, as data."""

import json
from typing import Any, cast

from cc_loopback import Respond

MODEL = "claude-sonnet-5"
MESSAGES = "/v1/messages"
BODY: dict[str, Any] = {"model": MODEL, "max_tokens": 99, "messages": [{"role": "user", "content": "Hello."}]}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **fields}


def result(content: Any = "ok", identity: str = "toolu_1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **fields}


def always(words: str) -> Respond:
    """Return a responder that gives the same answer to each request."""
    return lambda _: words


def parse_sse(data: bytes) -> list[dict[str, Any]]:
    """Return the events in a complete stream, and check that each names its type twice."""
    events: list[dict[str, Any]] = []
    for block in data.decode().split("\n\n")[:-1]:
        name, _, payload = block.partition("\n")
        event = json.loads(payload.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def plain(value: Any) -> Any:
    """Return messages without allowed differences: cache breakpoints, and a text instead of a list with one text."""
    if isinstance(value, list):
        return [plain(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    items = cast("dict[str, Any]", value).items()
    fields = {name: item if name == "input" else plain(item) for name, item in items if name != "cache_control"}
    if "role" in fields and isinstance(words := fields["content"], str):
        fields["content"] = [text(words)]
    return fields
