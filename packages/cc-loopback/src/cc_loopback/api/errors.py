"""The API error bodies, and the package exceptions."""

from collections.abc import Sequence

from .types import JsonObject

# Status, type, default message, and Amazon Bedrock's exception: the most general if none has the same meaning.
_ERRORS = (
    (400, "invalid_request_error", "Invalid request", "ValidationException"),
    (401, "authentication_error", "invalid x-api-key", "UnrecognizedClientException"),
    (402, "billing_error", "Your credit balance is too low", "AccessDeniedException"),
    (403, "permission_error", "Your API key may not use this resource", "AccessDeniedException"),
    (404, "not_found_error", "Not found", "ResourceNotFoundException"),
    (413, "request_too_large", "Request exceeds the maximum size", "ValidationException"),
    (429, "rate_limit_error", "Number of requests has exceeded your rate limit", "ThrottlingException"),
    (500, "api_error", "Internal server error", "InternalServerException"),
    (504, "timeout_error", "Request timed out", "ModelTimeoutException"),
    (529, "overloaded_error", "Overloaded", "ServiceUnavailableException"),
)
TYPE_BY_STATUS = {status: kind for status, kind, _, _ in _ERRORS}
_MESSAGE_BY_TYPE = {kind: message for _, kind, message, _ in _ERRORS}
BEDROCK_EXCEPTION_BY_TYPE = {kind: exception for _, kind, _, exception in _ERRORS}


class LoopbackError(Exception):
    """Base class for this package's errors."""


class ReplyError(LoopbackError):
    """A responder returned an invalid reply. The message names the field and the problem."""


class ScriptError(LoopbackError):
    """A script does not fit the requests. The message has the step and the request."""


class ThinkingError(LoopbackError):
    """A thinking block is not what the server signed. The message is the API's."""


class ServerStateError(LoopbackError):
    """The server is not in the required state, or did not reach it in time."""


class CassetteError(LoopbackError):
    """A cassette cannot be used, or has no answer for a request. The message says which, and how to record it."""


class MissingCassetteError(CassetteError):
    """There is no cassette yet."""


class UpstreamError(LoopbackError):
    """The API to record cannot be reached, or an answer broke off."""


COMPLETE_ERRORS = (CassetteError, UpstreamError, ScriptError)
"""Errors from cassettes and scripts, whose texts need no place. All others come from responders."""


def error_text(error: BaseException) -> str:
    """Return the message of a cassette's or script's error, or class, message and place of a responder error."""
    if isinstance(error, COMPLETE_ERRORS):
        return str(error)
    notes: list[str] = getattr(error, "__notes__", [])
    return ", ".join([f"{type(error).__name__}: {error}", *notes])


def first_error_text(errors: Sequence[BaseException]) -> str:
    """Return the first error text. Later errors often follow from it, so they are only counted."""
    first_error, *other_errors = errors
    text = error_text(first_error)
    return f"{text}\n({len(other_errors)} later requests failed, too)" if other_errors else text


def error_type_for(status: int) -> str:
    """Return the API error type for an HTTP status, with a default for other 4xx and 5xx statuses."""
    return TYPE_BY_STATUS.get(status) or ("invalid_request_error" if status < 500 else "api_error")


def error_body(error_type: str, message: str | None, request_id: str) -> JsonObject:
    """Return the API error object; the default message is the usual text for the type."""
    text = _MESSAGE_BY_TYPE.get(error_type, "Invalid request") if message is None else message
    return {"type": "error", "error": {"type": error_type, "message": text}, "request_id": request_id}
