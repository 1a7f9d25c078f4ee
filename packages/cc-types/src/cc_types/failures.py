"""Failures of requests to the Messages API: a row for each status, with the names that the API and the CLI use."""

from typing import Literal, NamedTuple, TypeAlias

__all__ = ["FAILURES", "Failure", "FailureKind", "failure_of"]

FailureKind: TypeAlias = Literal["auth", "invalid_request", "overloaded", "rate_limit", "server", "too_long"]
"""Cause of a failure, for a caller's reaction."""


class Failure(NamedTuple):
    """A kind of error response."""

    status: int
    error_type: str
    """Name in the API (https://docs.anthropic.com/en/api/errors)."""
    cli_name: str | None
    """Name in the CLI, on the message that it writes instead of an answer; `None` if it has none."""
    kind: FailureKind
    retryable: bool
    """True if a retry of the same request may succeed."""
    advice: str


_CHANGE, _LATER = "Change the request before sending it again.", "Try again later."
FAILURES = {
    failure.status: failure
    for failure in (
        Failure(400, "invalid_request_error", "invalid_request", "invalid_request", False, _CHANGE),
        Failure(
            401, "authentication_error", "authentication_failed", "auth", False,
            "Log in to Claude Code or set ANTHROPIC_API_KEY.",
        ),
        Failure(402, "billing_error", "billing_error", "auth", False, "Check the billing of the account."),
        Failure(
            403, "permission_error", "oauth_org_not_allowed", "auth", False,
            "Check the permissions of the credentials in use.",
        ),
        Failure(
            404, "not_found_error", "model_not_found", "invalid_request", False, "Check the name of the model."
        ),
        Failure(408, "timeout_error", None, "server", True, _LATER),
        Failure(409, "conflict_error", None, "invalid_request", True, _LATER),
        Failure(413, "request_too_large", None, "too_long", False, "Send a shorter request."),
        Failure(
            429, "rate_limit_error", "rate_limit", "rate_limit", True,
            "Wait, then try again with fewer requests at a time.",
        ),
        Failure(500, "api_error", "server_error", "server", True, _LATER),
        Failure(504, "timeout_error", None, "server", True, _LATER),
        Failure(529, "overloaded_error", "overloaded", "overloaded", True, _LATER),
    )
}  # fmt: skip
"""The failures by status."""


def failure_of(status: int) -> Failure:
    """Return the failure for any status; a status that is not in the table counts as 400 or as 500."""
    return FAILURES.get(status) or FAILURES[500 if status >= 500 else 400]
