"""The API responses: streaming events, their message, and errors with their body and headers.

The CLI reports a failed API call as an assistant message with a text for people, and as a result with the HTTP status
if there was a response. Measured on CLI 2.1.329: most texts contain the API message between the CLI's own words. A
few failures (404, 413, a prompt that is too long, a wrong key) have only the CLI's words. The CLI log has the API
message, see `process/api_log.py`; if it was read, it takes precedence.
"""

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
from claude_agent_sdk import AssistantMessage, ResultMessage, TextBlock
from pydantic_core import from_json, to_json
from typing_extensions import override

from cc_session import QueueTimeoutError
from cc_session.internals import login_advice
from cc_types import APIError, ClaudeCodeError, CLIConnectionError, JsonValue, ProcessExitedError
from cc_types.failures import BEDROCK_TYPES, BY_CLI_NAME, BY_TYPE, failure_of

Event = dict[str, Any]
"""An event in the Messages API stream, as the API sent it."""

WHITESPACE = (
    " \t\n\v\f\r\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""The characters that JavaScript's `trim()` removes."""
# The CLI text for an empty answer, dropped like one.
_NO_CONTENT = frozenset({"", "(no content)"})
_THINKING = frozenset({"thinking", "redacted_thinking"})

# Estimates the output if an answer broke off before the API counted it.
_CHARACTERS_PER_TOKEN = 4

# A tool input, in pieces of JSON.
_JSON = "partial_json"
# The appended field for each kind of delta: also the block field name, except for JSON.
_APPENDED = {
    "text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "input_json_delta": _JSON,
}  # fmt: skip
# Event types with a form that is checked.
_KINDS = frozenset(
    {"content_block_delta", "content_block_start", "content_block_stop", "message_delta", "message_start"}
)

REQUEST_ID = "request-id"
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
"""A field value of RFC 9110, section 5.5. The CLI reads and sends it in ISO 8859-1, and refuses other characters."""

_BEFORE = r"^(?:Failed to authenticate\. )?(?:API Error: )?(?:Request rejected \({status}\) · |{status} )?"
_AFTER = re.compile(r"\. This is a server-side issue, usually temporary — try again in a moment\..*$", re.DOTALL)
# The API refuses new models to old Claude Code versions, with a hint at the newer version.
_NEWER = r"\b(newer|outdated|update|upgrade|version)\b"
_OLD_CLI = re.compile(rf"(?is)\bclaude code\b.*{_NEWER}|{_NEWER}.*\bclaude code\b")
# A request that queues again costs little, so an early retry is fine.
_QUEUE_RETRY_SECONDS = 1.0
_NEWER_CLI = "(Install a newer claude-agent-sdk, which brings a newer CLI, or name one with cli_path.)"
_EVENT_CHARACTERS = 200
# The API's words for an invalid field; after any other words a secret may have stood there.
_HIDDEN_WORDS = {" should be ": "Input", " required": "Field", " inputs are not permitted": "Extra"}


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
        """The model stop reason, if known."""
        return self._message.get("stop_reason")

    @property
    def usage(self) -> dict[str, JsonValue]:
        """Usage so far, as the API counts it."""
        return self._message.get("usage", {})

    @property
    def billed(self) -> dict[str, JsonValue]:
        """The message without content. Before the end, which has the API count, `output_tokens` is estimated."""
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
                self._message |= event["delta"]
                self._message["usage"] = {**self.usage, **event.get("usage", {})}
                self._message |= {name: event[name] for name in event.keys() - {"type", "delta", "usage"}}
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


def says_nothing(block: Mapping[str, JsonValue]) -> bool:
    """Return True if a block counts as empty: the CLI drops an answer with only such blocks."""
    if block.get("type") == "text":
        return str(block.get("text")).strip(WHITESPACE) in _NO_CONTENT
    return block.get("type") in _THINKING


def sse(event: Event) -> bytes:
    """Return a server-sent event, in ASCII: some clients accept more than line feeds as line ends."""
    try:
        data = to_json(event, ensure_ascii=True)
    except ValueError:  # half a surrogate pair
        data = json.dumps(event, separators=(",", ":")).encode()
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), data)


def _parsed(text: str) -> JsonValue:
    """Return a tool input; if the JSON is truncated, the complete part, as the API client does."""
    try:
        return from_json(text, allow_partial=True)
    except ValueError:
        # The form in which the API accepts it back.
        return {"INVALID_JSON": text}


class MethodNotAllowedError(APIError):
    """Raised if a path does not have a request's method; `allowed` are the methods that it has."""

    def __init__(self, method: str, path: str, allowed: str) -> None:
        message = f"{path} does not allow {method}: use {allowed}"
        super().__init__(status=405, error_type="invalid_request_error", message=message)
        self.allowed = allowed


class FinalError(APIError):
    """An error that a retry cannot end, whatever the status says."""

    @property
    @override
    def retryable(self) -> bool:
        """False."""
        return False


class UnreadableEventError(FinalError):
    """The API, or a gateway before it, sent an event that it does not have; a retry would get it for the same price."""

    def __init__(self, event: object) -> None:
        text = repr(event)[:_EVENT_CHARACTERS]
        super().__init__(status=502, message=f"The API sent an event that the Messages API does not have: {text}")

    @override
    def _advice(self) -> str:
        return "Check the gateway, if there is one before the API."


def invalid(message: str) -> APIError:
    """Return the error for a request that is invalid, or that Claude Code cannot carry out."""
    return APIError(status=400, error_type="invalid_request_error", message=message)


def overloaded(error: QueueTimeoutError) -> APIError:
    """Return the error for a request that got no free process."""
    return APIError(status=503, error_type="overloaded_error", message=str(error), retry_after=_QUEUE_RETRY_SECONDS)


def turn_error(result: ResultMessage | None, apology: AssistantMessage | None, address: str) -> ClaudeCodeError:
    """Return the error for a turn without an answer from the API at `address`; an apology is the CLI message."""
    advice = f"Check that {address} can be reached, and try again."
    status = result.api_error_status if result is not None else None
    kind = apology.error if apology is not None else None
    failure = BY_CLI_NAME.get(kind or "")
    api_status = status or (failure and failure.status)
    text = _text(result, apology)
    if not text:
        return CLIConnectionError(reason="The API's answer broke off before its end", advice=advice)
    if api_status is None:
        return CLIConnectionError(reason=text.removeprefix("API Error: ").rstrip("."), advice=advice)
    if status is None and api_status == 401:
        words = "" if text.startswith("Not logged in") else f" (The CLI said: {text})"
        return APIError(status=401, message=f"Claude Code is not logged in. {login_advice()}{words}")
    # The API message between the CLI's own words.
    message = _AFTER.sub("", re.sub(_BEFORE.format(status=api_status), "", text))
    return APIError(status=api_status, message=message or text)


def as_logged(
    error: ClaudeCodeError, entry: Mapping[str, JsonValue] | None, status: int | None, headers: Mapping[str, str]
) -> ClaudeCodeError:
    """Return a turn error with the details in the CLI log, if any; `entry` is as in the API body."""
    request_id = headers.get(REQUEST_ID)
    if isinstance(error, ProcessExitedError | UnreadableEventError):
        return error
    if entry is None:
        if not isinstance(error, APIError) or request_id is None:
            return error
        entry = {"type": error.error_type, "message": error.message}
    message = _unredacted(str(entry.get("message", "")))
    if _OLD_CLI.search(message):
        message = f"{message} {_NEWER_CLI}"
    if (name := str(entry.get("type"))) in BEDROCK_TYPES:
        entry = {**entry, "type": (name := BEDROCK_TYPES[name])}
    status = (error.status if isinstance(error, APIError) else status) or BY_TYPE.get(name, failure_of(500)).status
    return APIError(
        status=status,
        message=message,
        error_type=str(entry["type"]) if "type" in entry else None,
        request_id=request_id,
        retry_after=retry_after(headers),
        details={name: value for name, value in entry.items() if name not in ("message", "type")},
    )


def _unredacted(message: str) -> str:
    """Return the API message with the words that the CLI log hides after a name such as `max_tokens:`."""
    for hidden, words in _HIDDEN_WORDS.items():
        message = message.replace(f": [REDACTED]{hidden}", f": {words}{hidden}")
    return message


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds that a response sets; None if there is none, or in an unknown form."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    with suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None


def _number(text: str | None) -> float | None:
    with suppress(ValueError):
        number = float(text or "")
        return number if math.isfinite(number) and number >= 0 else None
    return None


def error_body(error: APIError, request_id: str | None = None) -> dict[str, JsonValue]:
    """Return the API body for `error`; `request_id` is used if the error has no id."""
    fields: dict[str, JsonValue] = {"type": error.error_type, "message": error.message, **error.details}
    body: dict[str, JsonValue] = {"type": "error", "error": fields}
    if (identity := error.request_id or request_id) is not None:
        body["request_id"] = identity
    return body


def error_headers(error: APIError) -> dict[str, str]:
    """Return the headers for an error: request id, retries, and allowed methods, if known."""
    headers = {} if error.request_id is None else {REQUEST_ID: error.request_id}
    if isinstance(error, MethodNotAllowedError):
        headers["allow"] = error.allowed
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:.15g}"
    if isinstance(error, FinalError):
        headers["x-should-retry"] = "false"
    return headers


def error_response(error: APIError) -> httpx2.Response:
    """Return an error as the API would send it."""
    return httpx2.Response(error.status or 500, json=error_body(error), headers=raw_headers(error_headers(error)))


def raw_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return headers in the API bytes; `httpx2` would refuse those outside ASCII."""
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


def _text(result: ResultMessage | None, apology: AssistantMessage | None) -> str:
    """Return the CLI text about a failure, if any."""
    if result is not None and result.is_error:
        return (result.result or "; ".join(result.errors or []) or result.subtype).strip()
    blocks = apology.content if apology is not None else []
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock)).strip()
