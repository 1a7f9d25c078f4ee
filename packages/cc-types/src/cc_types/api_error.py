"""Error classes for the Messages API's error responses that Claude Code passed on."""

from collections.abc import Mapping
from datetime import UTC, datetime
from math import ceil

from .errors import ClaudeCodeError
from .failures import FAILURES, failure_of
from .json_value import JsonValue
from .rate_limits import RateLimits

__all__ = ["ERROR_TYPES", "APIError", "PlanLimitError"]

# Clients wait for less than this, in seconds, before a retry; a plan's window takes hours.
_LONGEST_RETRY_SECONDS = 60.0

ERROR_TYPES = {status: failure.error_type for status, failure in FAILURES.items()}
"""The API's error names by status."""
# Names in the API and in the CLI.
_RETRYABLE = {
    name for failure in FAILURES.values() if failure.retryable for name in (failure.error_type, failure.cli_name)
}


class APIError(ClaudeCodeError):
    """The Messages API answered a turn with an error."""

    status: int | None
    """The HTTP status, or `None` if there was no response or the CLI did not report it."""
    error_type: str
    """The API's name for the error, such as `overloaded_error`; derived from the status when not given."""
    message: str
    """The API's error message."""
    request_id: str | None
    """The API's id for the request, for Anthropic's support."""
    retry_after: float | None
    """Delay in seconds before a retry, as requested by the API."""
    details: Mapping[str, JsonValue]
    """The fields in the API's error beside type and message."""

    def __init__(
        self,
        *,
        status: int | None,
        message: str,
        error_type: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        details: Mapping[str, JsonValue] | None = None,
    ) -> None:
        self.status = status
        self.error_type = error_type or failure_of(500 if status is None else status).error_type
        self.message = message
        self.request_id = request_id
        self.retry_after = retry_after
        self.details = dict(details or {})
        answered = f"status {status}" if status is not None else "no status"
        request = f", request {request_id}" if request_id else ""
        super().__init__(
            f"The API answered with {answered} ({self.error_type}{request}): {message.rstrip('.')}. {self._advice()}"
        )

    @property
    def retryable(self) -> bool:
        """Return true if a retry of the same request may succeed."""
        return self.error_type in _RETRYABLE if self.status is None else failure_of(self.status).retryable

    def _advice(self) -> str:
        return failure_of(self.status or (500 if self.retryable else 400)).advice


class PlanLimitError(APIError):
    """A used-up window of the plan: requests are rejected until the reset. A throttle for seconds is not one."""

    limits: RateLimits
    """All limits in the response."""
    resets_at: datetime
    """Time when the window is reset."""

    def __init__(
        self,
        *,
        limits: RateLimits,
        resets_at: datetime,
        message: str,
        status: int | None = 429,
        error_type: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        details: Mapping[str, JsonValue] | None = None,
    ) -> None:
        self.limits = limits
        self.resets_at = resets_at
        super().__init__(
            status=status,
            message=message,
            error_type=error_type,
            request_id=request_id,
            # Whole seconds, since some clients read no fractions.
            retry_after=max(0.0, ceil(_seconds_until(resets_at))) if retry_after is None else retry_after,
            details=details,
        )

    @property
    def retryable(self) -> bool:
        """Return true if the window resets within 60 seconds: then a retry of the same request may succeed."""
        return _seconds_until(self.resets_at) <= _LONGEST_RETRY_SECONDS

    def _advice(self) -> str:
        window = self.limits.exhausted
        name = "plan's limit" if window is None else f"plan's limit {window.kind}"
        return f"The {name} is used up until {self.resets_at:%Y-%m-%d %H:%M %Z}: wait until then, or use another model."


def _seconds_until(time: datetime) -> float:
    return (time - datetime.now(UTC)).total_seconds()
