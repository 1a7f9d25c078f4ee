"""Removal of credentials and ids from requests and answers.

Request headers are never kept, so this module handles bodies, and header credentials that occur in bodies. Message and
tool call ids stay, because later requests refer to them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, repeat
from typing import cast

from ..api.errors import CassetteError
from ..api.prompt_cache import is_billing
from ..api.types import JsonObject
from .episodes import REQUEST_ID, TimedEvent

REMOVED = "<removed>"
_SESSION_HEADER = "x-claude-code-session-id"
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_KEY = re.compile(r"\bsk-ant-[\w-]{8,}")
_USER_IDS = re.compile(rf"{_UUID.pattern}|\b[0-9a-f]{{32,}}\b", re.IGNORECASE)
# Headers without a credential. Any other header may have one: a gateway chooses its own names.
_ORDINARY_HEADER = re.compile(
    r"accept.*|anthropic-.*|connection|content-.*|host|user-agent|x-app|x-stainless-.*|"
    r"idempotency-key|trace.*|x-request-id"
)
# Shorter header values, such as test keys, may be ordinary words.
_SHORTEST_CREDENTIAL = 16
# The response headers that clients act on. All others describe the account, the request or the transport.
_HEADERS = re.compile(r"content-type|retry-after|retry-after-ms|x-should-retry|anthropic-ratelimit-.*")
_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class Scrubber:
    """Replacement for credentials, ids, patterns and config folders, the same in all requests and answers of a run."""

    def __init__(self, patterns: Mapping[str, str], folders: Mapping[str, str]) -> None:
        self._patterns = [(_KEY, REMOVED)]
        for pattern, replacement in patterns.items():
            try:
                self._patterns.append((re.compile(pattern), replacement))
            except re.error as error:
                problem = f"{pattern!r}, a pattern to scrub, is not a regular expression: {error}"
                raise CassetteError(problem) from error
        self._replacements = dict(folders)

    def learn(self, headers: Mapping[str, str], body: JsonObject | None) -> None:
        """Note a request's credentials and ids, for this and all later texts."""
        for name, value in headers.items():
            if not _ORDINARY_HEADER.fullmatch(name):
                self._note(value, *re.split(r"[\s;,=]+", value), shortest=_SHORTEST_CREDENTIAL)
        self._note(headers.get(_SESSION_HEADER, ""), *_USER_IDS.findall(str((body or {}).get("metadata"))))

    def _note(self, *values: str, shortest: int = 1) -> None:
        self._replacements |= {value: REMOVED for value in values if len(value) >= shortest}

    def request_body(self, body: JsonObject) -> JsonObject:
        """Return a body without its metadata, which identifies the user, and without the Claude Code billing block."""
        fields = {name: value for name, value in body.items() if name != "metadata"}
        if isinstance(system := fields.get("system"), list):
            fields["system"] = [block for block in cast("list[object]", system) if not is_billing(block)]
        return cast("JsonObject", _each_text(fields, self.text))

    def answer_body(self, body: object) -> object:
        """Return an answer body, or a stream event. From an error, request id and account id are removed."""
        clean_body = _each_text(body, self.text)
        if not isinstance(clean_body, dict) or "error" not in clean_body:
            return cast("object", clean_body)
        error = cast("JsonObject", _each_text(cast("object", clean_body), lambda text: _UUID.sub(REMOVED, text)))
        return {**error, "request_id": REQUEST_ID} if "request_id" in error else error

    def response_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that clients act on."""
        return {name: self.text(value) for name, value in headers.items() if _HEADERS.fullmatch(name)}

    def text(self, text: str) -> str:
        """Return a text without credentials and ids."""
        # The longest first: a secret may be a part of another.
        for secret in sorted(self._replacements, key=len, reverse=True):
            text = text.replace(secret, self._replacements[secret])
        for pattern, replacement in self._patterns:
            text = pattern.sub(replacement, text)
        return text

    def events(self, events: Iterable[TimedEvent]) -> list[TimedEvent]:
        """Return stream events. Where deltas contain a secret together, the first of them gets the whole text."""
        clean_events = list(events)
        for (_, field), texts in _delta_texts(clean_events).items():
            full_text = "".join(texts.values())
            if (clean_text := self.text(full_text)) != full_text:
                for at, text in zip(texts, chain([clean_text], repeat("")), strict=False):
                    seconds, event = clean_events[at]
                    if isinstance(event, dict):
                        clean_events[at] = (seconds, {**event, "delta": {**event["delta"], field: text}})
        return clean_events


def _each_text(value: object, change: Callable[[str], str]) -> object:
    """Return JSON with all strings changed, field names excepted."""
    match value:
        case str():
            return change(value)
        case list():
            return [_each_text(item, change) for item in cast("list[object]", value)]
        case dict():
            return {name: _each_text(item, change) for name, item in cast("JsonObject", value).items()}
        case _:
            return value


def _delta_texts(events: Iterable[TimedEvent]) -> dict[tuple[object, str], dict[int, str]]:
    """Return delta texts by block and field, and within them by event position."""
    texts: dict[tuple[object, str], dict[int, str]] = {}
    for at, (_, event) in enumerate(events):
        delta: JsonObject = event.get("delta", {}) if isinstance(event, dict) else {}
        if isinstance(event, dict) and (field := _DELTAS.get(delta.get("type", ""))):
            texts.setdefault((event.get("index"), field), {})[at] = delta[field]
    return texts
