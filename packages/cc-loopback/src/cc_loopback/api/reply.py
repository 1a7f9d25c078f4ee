"""Conversion from a responder's reply to a complete API message.

It adds optional fields (ids, stop reason, usage) and refuses invalid replies.
"""

import json
import random
import re
import string
from collections.abc import Mapping, Sequence
from typing import Any, cast

from .errors import ReplyError
from .types import JsonObject, Reply

_OPTIONAL_KEYS = frozenset({
    "container", "context_management", "diagnostics", "input_transformations", "stop_details",
})  # fmt: skip
_MESSAGE_KEYS = _OPTIONAL_KEYS | {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"}
# For example `us.anthropic.claude-haiku-4-5-20251001-v1:0`.
_ON_BEDROCK = re.compile(r"(?:[a-z-]+\.)?anthropic\.(?P<model>.+?)(?:-v\d+(?::\d+)?)?")
_REQUIRED_TEXT = {"text": "text", "thinking": "thinking", "redacted_thinking": "data"}
_CALLS = {"tool_use": "toolu", "server_tool_use": "srvtoolu", "mcp_tool_use": "mcptoolu"}
_CHARACTERS_PER_TOKEN = 4
# Clients cannot send a thinking block without a signature back to the API.
_DEFAULT_SIGNATURE = "bG9vcGJhY2stc2lnbmF0dXJl"
_ID_ALPHABET, _ID_LENGTH = string.ascii_letters + string.digits, 24
# Not the module generator: if a test seeds `random`, two servers would generate the same ids.
_random = random.SystemRandom()


def make_message(reply: Reply, body: JsonObject, counts: JsonObject) -> JsonObject:
    """Return the complete message that answers `body`; `counts` are the input's, unless the reply has its own.

    Raises:
        ReplyError: `reply` is not a text, a list of content blocks, or a message.
    """
    fields = _message_fields(reply)
    content = _content(fields["content"])
    stop_reason = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
    message: JsonObject = {
        "id": fields.get("id") or new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": fields.get("model") or answering_model(body["model"]),
        "content": content,
        "stop_reason": fields.get("stop_reason") or stop_reason,
        "stop_sequence": fields.get("stop_sequence"),
        "usage": _usage(fields.get("usage"), counts, content),
        **{key: fields[key] for key in fields if key in _OPTIONAL_KEYS},
    }
    try:
        json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ReplyError(f"the message cannot be written as JSON: {error}") from error
    return message


def new_id(prefix: str) -> str:
    """Return `prefix`, an underscore and 24 base62 characters."""
    return f"{prefix}_{''.join(_random.choices(_ID_ALPHABET, k=_ID_LENGTH))}"


def answering_model(name: str) -> str:
    """Return the model name for the response: without the Bedrock region, vendor and version."""
    match = _ON_BEDROCK.fullmatch(name)
    return match["model"] if match is not None else name


def _message_fields(reply: object) -> Mapping[str, Any]:
    if isinstance(reply, Mapping):
        message = cast("Mapping[str, Any]", reply)
        if "content" not in message:
            raise ReplyError(f"a message needs 'content', but has only {sorted(message)}")
        if unknown_keys := sorted(set(message) - _MESSAGE_KEYS):
            raise ReplyError(f"a message has unknown fields {unknown_keys}; known are {sorted(_MESSAGE_KEYS)}")
        return message
    if isinstance(reply, (str, Sequence)) and not isinstance(reply, (bytes, bytearray)):
        return {"content": cast("str | Sequence[object]", reply)}
    raise ReplyError(f"a responder must return blocks, a str or a message dict, not {type(reply).__name__}")


def _content(content: object) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, Sequence):
        raise ReplyError(f"content must be a str or a list of blocks, not {type(content).__name__}")
    return [_block(index, block) for index, block in enumerate(cast("Sequence[object]", content))]


def _block(index: int, item: object) -> JsonObject:
    where = f"content[{index}]"
    if not isinstance(item, Mapping):
        raise ReplyError(f"{where} must be a content block (a dict), not {type(item).__name__}")
    block: JsonObject = dict(cast("Mapping[str, Any]", item))
    kind = block.get("type")
    if not isinstance(kind, str):
        raise ReplyError(f"{where} needs a 'type'")
    field = _REQUIRED_TEXT.get(kind)
    if field and not isinstance(block.get(field), str):
        raise ReplyError(f"{where} ({kind}) needs {field!r} as a str")
    if kind == "thinking" and not isinstance(block.setdefault("signature", _DEFAULT_SIGNATURE), str):
        raise ReplyError(f"{where} (thinking) needs 'signature' as a str if it has one")
    return _call(where, block) if kind in _CALLS else block


def _call(where: str, block: JsonObject) -> JsonObject:
    kind = block["type"]
    if not isinstance(block.get("name"), str):
        raise ReplyError(f"{where} ({kind}) needs 'name' as a str")
    if not isinstance(block.get("input", {}), Mapping):
        raise ReplyError(f"{where} ({kind}) needs 'input' as a dict")
    identity = block.get("id") or new_id(_CALLS[kind])
    return {**block, "id": identity, "input": dict(block.get("input", {}))}


def _usage(fields: object, counts: JsonObject, content: list[JsonObject]) -> JsonObject:
    if fields is not None and not isinstance(fields, Mapping):
        raise ReplyError(f"usage must be a dict, not {type(fields).__name__}")
    usage: JsonObject = {**counts, "output_tokens": _output_tokens(content), "service_tier": "standard"}
    usage |= cast("Mapping[str, Any]", fields or {})
    for key in ("input_tokens", "output_tokens"):
        if not isinstance(usage[key], int):
            raise ReplyError(f"usage needs {key!r} as an int")
    return usage


def _output_tokens(content: list[JsonObject]) -> int:
    # Without ids, types and signatures: ids are random, and the count must be the same in every run.
    parts = [block.get("text") or block.get("thinking") or block.get("input") or "" for block in content]
    length = sum(len(part) if isinstance(part, str) else len(json.dumps(part, default=str)) for part in parts)
    return max(1, length // _CHARACTERS_PER_TOKEN)
