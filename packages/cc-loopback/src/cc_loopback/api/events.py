"""Conversion of a complete message to the API stream events. This module knows no timing, faults or sockets."""

import json
import math
import re
from collections.abc import Iterator

from .types import JsonObject

# So many pieces make a realistic stream, and stay few enough for a test with a long text.
_MAX_PIECES = 64
_JSON_PIECE = 8
# These usage fields describe how the request was served, so only the first event has them.
_ONLY_AT_START = ("service_tier", "cache_creation", "inference_geo")
_ONLY_AT_END = ("server_tool_use", "output_tokens_details", "iterations")


def stream_events(message: JsonObject) -> Iterator[JsonObject]:
    """Yield the events for a message from `make_message`, in the API's order."""
    yield _message_start(message)
    for index, block in enumerate(message["content"]):
        start, deltas = _split(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        if index == 0:
            yield {"type": "ping"}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield _message_delta(message)
    yield {"type": "message_stop"}


def encode_event(event: JsonObject) -> bytes:
    """Return an event as a server-sent event."""
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), encode_json(event))


def encode_json(value: object) -> bytes:
    """Return compact JSON, as the API sends it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _message_start(message: JsonObject) -> JsonObject:
    usage = {key: value for key, value in message["usage"].items() if key not in _ONLY_AT_END}
    usage["output_tokens"] = min(1, usage["output_tokens"])
    start = {key: message[key] for key in ("id", "type", "role")} | {"model": _first_model(message)}
    start |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    start |= {key: message[key] for key in ("diagnostics", "input_transformations") if key in message}
    return {"type": "message_start", "message": start}


def _first_model(message: JsonObject) -> str:
    """Return the model whose output comes first: one that declines after some output hands over in mid-stream."""
    kinds = [block["type"] for block in message["content"]]
    later_blocks = [block for at, block in enumerate(message["content"]) if {*kinds[:at]} - {"fallback"}]
    return next((block["from"]["model"] for block in later_blocks if block["type"] == "fallback"), message["model"])


def _message_delta(message: JsonObject) -> JsonObject:
    keys = ("stop_reason", "stop_sequence", "stop_details", "container")
    usage = {key: value for key, value in message["usage"].items() if key not in _ONLY_AT_START}
    delta = {key: message[key] for key in keys if key in message}
    event: JsonObject = {"type": "message_delta", "delta": delta, "usage": usage}
    if "context_management" in message:
        event["context_management"] = message["context_management"]
    return event


def _split(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    """Return a block as it starts, and the deltas that complete it."""
    match block["type"]:
        case "text":
            return _split_text(block)
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _words(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, deltas
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            # The API starts with an empty piece, before the model has written the first brace.
            pieces = ["", *_chunks(json.dumps(block["input"], ensure_ascii=False), _JSON_PIECE)]
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        case _:
            # Redacted thinking and server tool results are sent in a single piece.
            return block, []


def _split_text(block: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
    deltas: list[JsonObject] = [{"type": "text_delta", "text": piece} for piece in _words(block["text"])]
    start = {**block, "text": ""}
    if block.get("citations"):
        start["citations"] = []
        deltas += [{"type": "citations_delta", "citation": citation} for citation in block["citations"]]
    return start, deltas


def _words(text: str) -> list[str]:
    """Split a text after words, similar to tokens; words are joined if there would be too many pieces."""
    words = re.findall(r"\S+\s*|\s+", text)
    step = max(1, math.ceil(len(words) / _MAX_PIECES))
    return ["".join(words[at : at + step]) for at in range(0, len(words), step)]


def _chunks(text: str, size: int) -> list[str]:
    size = max(size, math.ceil(len(text) / _MAX_PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]
