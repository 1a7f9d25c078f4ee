"""Signed thinking: a signature binds a thinking block to the model and to everything before the block.

The server checks the signatures in a request as the API does for its newest models. This module knows no HTTP.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterator
from typing import NamedTuple, cast

from .errors import ThinkingError
from .prompt_cache import is_billing
from .reply import answering_model
from .types import JsonObject

# The field with the signature, by block type.
_SIGNATURE_FIELD = {"thinking": "signature", "redacted_thinking": "data"}
_SIGNATURE = re.compile(r"sig_(?P<model>\w{16})_(?P<prefix>\w{16})_(?P<link>\w{16})")
# Clients look for the second sentence, the API's own, and then ask for `drop_block`.
_STALE = (
    "Invalid signature in a thinking block. The block is bound to a different conversation: `system`, `tools`, an "
    "earlier message or the thinking itself has changed. Remove the thinking, or set "
    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)


class _Thinking(NamedTuple):
    message: int
    position: int
    block: JsonObject
    expected: str
    is_first: bool


class ThinkingSigner:
    """Signs thinking blocks, and checks them in later requests, with a random key."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes()

    def sign(self, message: JsonObject, body: JsonObject) -> None:
        """Replace the signatures in a message that answers `body`."""
        with_answer = {**body, "messages": [*body["messages"], message]}
        for index, _, block, signature, _ in self._thinking(with_answer):
            if index == len(body["messages"]):
                block[_SIGNATURE_FIELD[block["type"]]] = signature

    def check(self, body: JsonObject) -> tuple[JsonObject, list[JsonObject]]:
        """Return the body without the blocks that the API drops, and the API report about them.

        It drops those of another model, and with `drop_block` those whose prefix has changed. At the beginning of the
        conversation thinking may be missing.

        Raises:
            ThinkingError: The request must be refused.
        """
        config: JsonObject = body.get("thinking") or {}
        binding: JsonObject = config.get("block_binding") or {}
        asks_for_drop = binding.get("prefix_mismatch_behavior") == "drop_block"
        report: dict[tuple[int, int], JsonObject] = {}
        for thinking in self._thinking(body):
            path = f"messages.{thinking.message}.content.{thinking.position}"
            reason = _mismatch(thinking, path)
            if reason == "prefix_binding_mismatch" and not asks_for_drop:
                raise ThinkingError(f"{path}: {_STALE}")
            if reason:
                report[thinking[:2]] = {"type": "thinking_dropped", "path": path, "reason": reason}
        messages = [
            {**message, "content": [block for at, block in enumerate(_blocks(message)) if (index, at) not in report]}
            for index, message in enumerate(body["messages"])
        ]
        return ({**body, "messages": messages} if report else body), [*report.values()]

    def _thinking(self, body: JsonObject) -> Iterator[_Thinking]:
        model, last_digest = self._digest(answering_model(body["model"])), ""
        digest = hmac.new(self._key, digestmod="sha256")
        for block in [*_blocks({"content": body.get("system") or []}), *(body.get("tools") or ())]:
            if not is_billing(block):
                digest.update(_canonical(block))
        for index, message in enumerate(body["messages"]):
            kinds = ["", ""]
            for position, block in enumerate(_blocks(message)):
                kinds.append(str(block.get("type")))
                if field := _SIGNATURE_FIELD.get(kinds[-1]):
                    prefix = self._digest(digest.hexdigest(), block.get("thinking"))
                    # A `fallback` block counts only between thinking, since it is not a part of the prompt.
                    is_hop = kinds[-3] in _SIGNATURE_FIELD and kinds[-2] == "fallback"
                    link = self._digest(prefix, last_digest, is_hop)
                    yield _Thinking(index, position, block, f"sig_{model}_{prefix}_{link}", not last_digest)
                    last_digest = str(block.get(field))
                elif kinds[-1] != "fallback" and block.get("text") != "":  # clients leave out an empty text
                    digest.update(_canonical([message["role"], block]))

    def _digest(self, *values: object) -> str:
        return hmac.new(self._key, repr(values).encode(), hashlib.sha256).hexdigest()[:16]


def _mismatch(thinking: _Thinking, path: str) -> str | None:
    kind = thinking.block["type"]
    actual = _SIGNATURE.fullmatch(str(thinking.block.get(_SIGNATURE_FIELD[kind])))
    expected = _SIGNATURE.fullmatch(thinking.expected)
    if actual is None or expected is None:
        raise ThinkingError(f"{path}: Invalid `{_SIGNATURE_FIELD[kind]}` in `{kind}` block")
    if actual["model"] != expected["model"]:
        return "model_binding_mismatch"
    parts = ("prefix",) if thinking.is_first else ("prefix", "link")
    return None if actual.group(*parts) == expected.group(*parts) else "prefix_binding_mismatch"


def _blocks(message: JsonObject) -> list[JsonObject]:
    content = message.get("content", [])
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _canonical(value: object) -> bytes:
    return json.dumps(_as_seen(value), sort_keys=True).encode() + b"\n"


def _as_seen(value: object) -> object:
    """Return a value without what the model does not see: cache breakpoints, nulls, and how a number is written."""
    if isinstance(value, dict):
        fields = cast("JsonObject", value).items()
        return {key: _as_seen(item) for key, item in fields if key != "cache_control" and item is not None}
    if isinstance(value, list):
        return [_as_seen(item) for item in cast("list[object]", value)]
    # Clients in JavaScript write 1.0 as 1.
    return int(value) if isinstance(value, float) and value.is_integer() else value
