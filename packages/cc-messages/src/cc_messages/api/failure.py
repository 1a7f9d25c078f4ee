"""Failures: from the CLI's text to the error that the API's client expects, its body, headers and response.

The CLI reports a failed API call as an assistant message with a text for people, and as a result with the HTTP status
if there was a response. Measured on CLI 2.1.329: most texts contain the API's message between the CLI's own words. A
few failures (404, 413, a prompt that is too long, a wrong key) have only the CLI's words. The CLI's log has the API's
message, see `process/api_log.py`; if it was read, it takes precedence.
"""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx2
from claude_agent_sdk import AssistantMessage, ResultMessage, TextBlock
from typing_extensions import override

from cc_session import QueueTimeoutError
from cc_session.internals import login_advice
from cc_types import (
    APIError,
    ClaudeCodeError,
    CLIConnectionError,
    JsonValue,
    PlanLimitError,
    ProcessExitedError,
    RateLimits,
)  # fmt: skip
from cc_types.failures import BEDROCK_TYPES, BY_CLI_NAME, BY_TYPE, failure_of

__all__ = [
    "REQUEST_ID", "MethodNotAllowedError", "UnreadableEventError", "as_logged", "detailed", "error_body",
    "error_headers", "error_response", "invalid", "overloaded", "retry_after", "turn_error", "with_limits",
]  # fmt: skip

REQUEST_ID = "request-id"

_BEFORE = r"^(?:Failed to authenticate\. )?(?:API Error: )?(?:Request rejected \({status}\) · |{status} )?"
_AFTER = re.compile(r"\. This is a server-side issue, usually temporary — try again in a moment\..*$", re.DOTALL)
# The API refuses new models to old Claude Code versions, with a hint at the newer version.
_NEWER = r"\b(newer|outdated|update|upgrade|version)\b"
_OLD_CLI = re.compile(rf"(?is)\bclaude code\b.*{_NEWER}|{_NEWER}.*\bclaude code\b")
# A request that queues again costs little, so an early retry is fine.
_QUEUE_RETRY_SECONDS = 1.0
_NEWER_CLI = "(Install a newer claude-agent-sdk, which brings a newer CLI, or name one with cli_path.)"
_EVENT_CHARACTERS = 200


class MethodNotAllowedError(APIError):
    """Raised if a path does not have a request's method; `allowed` are the methods that it has."""

    def __init__(self, method: str, path: str, allowed: str) -> None:
        message = f"{path} does not allow {method}: use {allowed}"
        super().__init__(status=405, error_type="invalid_request_error", message=message)
        self.allowed = allowed


class UnreadableEventError(APIError):
    """The API, or a gateway before it, sent an event that the Messages API does not have."""

    def __init__(self, event: object) -> None:
        text = repr(event)[:_EVENT_CHARACTERS]
        super().__init__(status=502, message=f"The API sent an event that the Messages API does not have: {text}")

    @property
    @override
    def retryable(self) -> bool:
        """False: the same request would get the same events, for the same price."""
        return False

    @override
    def _advice(self) -> str:
        return "Check the gateway, if there is one before the API."


def detailed(
    status: int | None,
    error: Mapping[str, JsonValue],
    *,
    request_id: str | None = None,
    retry_after: float | None = None,
) -> APIError:
    """Return the error with `error` added to its body."""
    return APIError(
        status=status,
        message=str(error.get("message", "")),
        error_type=str(error["type"]) if "type" in error else None,
        request_id=request_id,
        retry_after=retry_after,
        details={name: value for name, value in error.items() if name not in ("message", "type")},
    )


def invalid(message: str) -> APIError:
    """Return the error for a request that is invalid, or that Claude Code cannot carry out."""
    return APIError(status=400, error_type="invalid_request_error", message=message)


def overloaded(error: QueueTimeoutError) -> APIError:
    """Return the error for a request that got no free process."""
    return APIError(status=503, error_type="overloaded_error", message=str(error), retry_after=_QUEUE_RETRY_SECONDS)


def turn_error(result: ResultMessage | None, apology: AssistantMessage | None, address: str) -> ClaudeCodeError:
    """Return the error for a turn without an answer from the API at `address`.

    The turn may have a result, and an apology: an assistant message that the CLI wrote itself.
    """
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
    # The API's message between the CLI's own words.
    message = _AFTER.sub("", re.sub(_BEFORE.format(status=api_status), "", text))
    return APIError(status=api_status, message=message or text)


def as_logged(
    error: ClaudeCodeError, entry: Mapping[str, JsonValue] | None, status: int | None, headers: Mapping[str, str]
) -> ClaudeCodeError:
    """Return a turn's error with the details in the CLI's log, if any; `entry` is as in the API's body."""
    request_id = headers.get(REQUEST_ID)
    if isinstance(error, ProcessExitedError):
        return error
    if entry is None:
        if not isinstance(error, APIError) or request_id is None:
            return error
        entry = {"type": error.error_type, "message": error.message}
    if _OLD_CLI.search(str(entry.get("message", ""))):
        entry = {**entry, "message": f"{entry['message']} {_NEWER_CLI}"}
    if (name := str(entry.get("type"))) in BEDROCK_TYPES:
        entry = {**entry, "type": (name := BEDROCK_TYPES[name])}
    status = (error.status if isinstance(error, APIError) else status) or BY_TYPE.get(name, failure_of(500)).status
    return detailed(status, entry, request_id=request_id, retry_after=retry_after(headers))


def with_limits(error: ClaudeCodeError, limits: RateLimits | None) -> ClaudeCodeError:
    """Return the error, as a `PlanLimitError` if `limits` show that a plan window is used up."""
    resets_at = None if limits is None else limits.exhausted_until
    if limits is None or resets_at is None or not isinstance(error, APIError):
        return error
    if error.status is None or failure_of(error.status).kind != "rate_limit":
        return error
    return PlanLimitError(
        limits=limits,
        resets_at=resets_at,
        message=error.message,
        error_type=error.error_type,
        request_id=error.request_id,
        retry_after=error.retry_after,
        details=error.details,
    )


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
    """Return the API's body for `error`; `request_id` is used if the error has no id."""
    fields: dict[str, JsonValue] = {"type": error.error_type, "message": error.message, **error.details}
    body: dict[str, JsonValue] = {"type": "error", "error": fields}
    if (identity := error.request_id or request_id) is not None:
        body["request_id"] = identity
    return body


def error_headers(error: APIError) -> dict[str, str]:
    """Return the headers for an error: request id, wait before a retry, and allowed methods, if known."""
    headers = {} if error.request_id is None else {REQUEST_ID: error.request_id}
    if isinstance(error, MethodNotAllowedError):
        headers["allow"] = error.allowed
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:.15g}"
    return headers


def error_response(error: APIError) -> httpx2.Response:
    """Return an error as the API would send it."""
    return httpx2.Response(error.status or 500, json=error_body(error), headers=error_headers(error))


def _text(result: ResultMessage | None, apology: AssistantMessage | None) -> str:
    """Return the CLI's text about a failure, if any."""
    if result is not None and result.is_error:
        return (result.result or "; ".join(result.errors or []) or result.subtype).strip()
    blocks = apology.content if apology is not None else []
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock)).strip()
