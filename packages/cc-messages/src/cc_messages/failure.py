"""What went wrong in a turn, from the CLI's words to the error that the API's client expects.

The CLI reports a failed API call as an assistant message with a text for people, and as a result with the HTTP
status if there was a response. Measured on CLI 2.1.329: most texts hold the API's message between words of the CLI's
own; for a few failures (404, 413, a prompt that is too long, a wrong key) the CLI's words are all there is.
"""

import re

from claude_agent_sdk import AssistantMessage, ResultMessage, TextBlock

from cc_types import APIError, ClaudeCodeError, CLIConnectionError, JsonValue

__all__ = ["Refusal", "error_body", "invalid", "turn_error"]

# The CLI's name for the failure -> the status the API would have answered with, where the CLI gives none.
_STATUSES = {
    "authentication_failed": 401,
    "oauth_org_not_allowed": 403,
    "billing_error": 402,
    "rate_limit": 429,
    "model_not_found": 404,
    "invalid_request": 400,
    "overloaded": 529,
}
_BEFORE = r"^(?:Failed to authenticate\. )?(?:API Error: )?(?:Request rejected \({status}\) · |{status} )?"
_AFTER = re.compile(r"\. This is a server-side issue, usually temporary — try again in a moment\..*$", re.DOTALL)
_NOT_LOGGED_IN = (
    "Claude Code is not logged in. Set ANTHROPIC_API_KEY, or run `claude` in a terminal and type /login. "
    "(The CLI said: {text})"
)
_TRY_AGAIN = "Check the network and try again."


class Refusal(APIError):
    """A request that cannot be honoured through Claude Code, told in a form that clients know what to do about."""

    details: dict[str, JsonValue]
    """The `details` of the error, by which the client knows it."""

    def __init__(self, message: str, details: dict[str, JsonValue]) -> None:
        super().__init__(status=400, error_type="invalid_request_error", message=message)
        self.details = details


def invalid(message: str) -> APIError:
    """The error for a request that is wrong, or that cannot be honoured through Claude Code."""
    return APIError(status=400, error_type="invalid_request_error", message=message)


def turn_error(result: ResultMessage | None, apology: AssistantMessage | None) -> ClaudeCodeError:
    """The error of a turn without an answer.

    Args:
        result: The turn's result, if it has ended.
        apology: The assistant message that the CLI wrote itself, if there was one.
    """
    status = result.api_error_status if result is not None else None
    kind = apology.error if apology is not None else None
    known = status or _STATUSES.get(kind or "")
    text = _text(result, apology)
    if not text:
        return CLIConnectionError(reason="The API's answer broke off before its end", advice=_TRY_AGAIN)
    if known is None:
        return CLIConnectionError(reason=text.removeprefix("API Error: ").rstrip("."), advice=_TRY_AGAIN)
    if status is None and known == 401:
        return APIError(status=401, message=_NOT_LOGGED_IN.format(text=text))
    return APIError(status=known, message=_api_message(text, known) or text)


def error_body(error: APIError, request_id: str | None = None) -> dict[str, JsonValue]:
    """The body with which the API reports `error`; `request_id` is for one that has none of its own."""
    told: dict[str, JsonValue] = {"type": error.error_type, "message": error.message}
    if isinstance(error, Refusal):
        told["details"] = error.details
    body: dict[str, JsonValue] = {"type": "error", "error": told}
    if (known := error.request_id or request_id) is not None:
        body["request_id"] = known
    return body


def _text(result: ResultMessage | None, apology: AssistantMessage | None) -> str:
    """What the CLI says about a failure, if it says anything."""
    if result is not None and result.is_error:
        return (result.result or "; ".join(result.errors or []) or result.subtype).strip()
    blocks = apology.content if apology is not None else []
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock)).strip()


def _api_message(text: str, status: int) -> str:
    """What the API said, out of what the CLI made of it."""
    return _AFTER.sub("", re.sub(_BEFORE.format(status=status), "", text))
