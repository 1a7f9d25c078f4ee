"""The prompt tokens, and which of them the API reads from its cache or writes to it. This module knows no HTTP.

Everything up to the last cache breakpoint is in the cache afterwards, without expiry. Other requests with the same
beginning read it. Shorter beginnings are never cached.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any, cast

from .types import JsonObject

# The minimum of most models.
_MIN_TOKENS = 1024
_CHARACTERS_PER_TOKEN = 4
_DEFAULT_TTL = "5m"

# At Anthropic's own host Claude Code changes it with each request, and its cache and thinking hold all the same.
_BILLING_BLOCK = "x-anthropic-billing-header:"


def is_billing(block: object) -> bool:
    """Return true for the system block with Claude Code's facts about itself, which is not in the prompt."""
    return isinstance(block, dict) and str(cast("JsonObject", block).get("text")).startswith(_BILLING_BLOCK)


def input_tokens(body: JsonObject) -> int:
    """Return a plausible token count for a request, which depends only on the prompt length."""
    return max(1, sum(len(_as_text(block)) for block in _blocks(body)) // _CHARACTERS_PER_TOKEN)


class PromptCache:
    """The cache for all prompts of a server."""

    def __init__(self) -> None:
        self._prefixes: set[bytes] = set()

    def clear(self) -> None:
        """Forget all prompts."""
        self._prefixes.clear()

    def usage(self, body: JsonObject) -> JsonObject:
        """Return the counts of a request input, and write its prompt to the cache."""
        total, hit, last_written = input_tokens(body), 0, 0
        writes = {"5m": 0, "1h": 0}
        characters, digest, prefixes = 0, hashlib.sha256(body["model"].encode()), set[bytes]()
        places: list[tuple[int, bytes]] = []
        for block in _blocks(body):
            text = _as_text(block)
            characters += len(text)
            if "role" in block or not is_billing(block):  # a message may have any text
                digest.update(text.encode())
            places.append((characters // _CHARACTERS_PER_TOKEN, digest.digest()))
            breakpoint_ = block.get("cache_control")
            if breakpoint_ and places[-1][0] >= _MIN_TOKENS:
                hit = max([hit, *(tokens for tokens, prefix in places if prefix in self._prefixes)])
                prefixes.add(places[-1][1])
                writes[breakpoint_.get("ttl", _DEFAULT_TTL)] += max(0, places[-1][0] - max(hit, last_written))
                last_written = places[-1][0]
        self._prefixes |= prefixes
        counts = {
            "input_tokens": total - last_written,
            "cache_creation_input_tokens": sum(writes.values()),
            "cache_read_input_tokens": hit,
        }
        lifetimes = {f"ephemeral_{ttl}_input_tokens": tokens for ttl, tokens in writes.items()}
        return {**counts, "cache_creation": lifetimes} if last_written else counts


def _blocks(body: JsonObject) -> Iterator[JsonObject]:
    """Yield the blocks in the prompt's order. A breakpoint of the whole request is on the last block."""
    blocks = [*(body.get("tools") or ()), *_content(body.get("system"))]
    for message in body["messages"]:
        content = _content(message.get("content"))
        blocks += [{"role": message["role"], **block} if isinstance(block, dict) else {} for block in content]
    if body.get("cache_control") and blocks:
        blocks[-1] = {**blocks[-1], "cache_control": body["cache_control"]}
    return iter(blocks)


def _content(content: str | list[Any] | None) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _as_text(block: JsonObject) -> str:
    fields = {name: value for name, value in cast("dict[str, object]", block).items() if name != "cache_control"}
    return json.dumps(fields, default=str, sort_keys=True)
