"""What went wrong in a turn, from the CLI's words to the error that the API's client expects.

The CLI reports a failed API call as an assistant message with a text for people, and as a result with the HTTP
status if there was a response.
"""

import re

from claude_agent_sdk import AssistantMessage, ResultMessage

from cc_types import APIError, ClaudeCodeError, CLIConnectionError, JsonValue

__all__ = ["error_body", "invalid", "turn_error"]

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
_CLI_PREFIX = re.compile(r"^(?:Failed to authenticate\. )?(?:API Error: )?(?:Request rejected \(\d+\) · |\d{3} )?")
_NOT_LOGGED_IN = (
    "Claude Code is not logged in. Set ANTHROPIC_API_KEY, or run `claude` in a terminal and type /login. "
    "(The CLI said: {text})"
)


def invalid(message: str) -> APIError:
    """The error for a request that is wrong, or that cannot be honoured through Claude Code."""
    return APIError(status=400, error_type="invalid_request_error", message=message)


def turn_error(result: ResultMessage, apology: AssistantMessage | None) -> ClaudeCodeError:
    """The error of a turn that ended without an answer.

    Args:
        result: The turn's result.
        apology: The assistant message that the CLI wrote itself, if there was one.
    """
    text = (result.result or "; ".join(result.errors or []) or result.subtype).strip()
    kind = apology.error if apology is not None else None
    status = result.api_error_status or _STATUSES.get(kind or "")
    if status is None:
        return CLIConnectionError(reason=text.rstrip("."), advice="Check the network and try again.")
    if result.api_error_status is None and status == 401:
        return APIError(status=401, message=_NOT_LOGGED_IN.format(text=text))
    return APIError(status=status, message=_CLI_PREFIX.sub("", text) or text)


def error_body(error: APIError) -> dict[str, JsonValue]:
    """The body with which the API reports `error`."""
    body: dict[str, JsonValue] = {"type": "error", "error": {"type": error.error_type, "message": error.message}}
    if error.request_id is not None:
        body["request_id"] = error.request_id
    return body
