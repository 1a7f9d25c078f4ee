"""The error classes for error responses of the Messages API that Claude Code passed on."""

from collections.abc import Mapping
from datetime import UTC, datetime
from math import ceil

from pydantic import JsonValue

from .errors import ClaudeCodeError
from .failures import BY_CLI_NAME, BY_STATUS, BY_TYPE, Failure, advice_of, failure_of, plan_limit_advice
from .rate_limits import RateLimits

# Clients wait for less than this, in seconds, before a retry; a window of a plan takes hours.
_LONGEST_RETRY_SECONDS = 60.0


class APIError(ClaudeCodeError):
    """The Messages API answered a turn with an error."""

    status: int | None
    """The HTTP status, or `None` if there was no response or the CLI did not report it."""
    error_type: str
    """The API name for the error, such as `overloaded_error`; derived from the status when not given."""
    message: str
    """The error message of the API."""
    request_id: str | None
    """The API id of the request, for Anthropic's support."""
    retry_after: float | None
    """Delay in seconds before a retry, as requested by the API."""
    details: Mapping[str, JsonValue]
    """The fields of the API error beside its type and message."""

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
        self.error_type = error_type or failure_of(status or 500).error_type
        self.message = message
        self.request_id = request_id
        self.retry_after = retry_after
        self.details = dict(details or {})
        answered = f"status {status}" if status is not None else "no status"
        request = f", request {request_id}" if request_id else ""
        sentence = f"The API answered with {answered} ({self.error_type}{request}): {message.rstrip('.')}."
        super().__init__(f"{sentence} {self._advice()}".rstrip())

    @property
    def retryable(self) -> bool:
        """Return true if a retry of the same request may succeed."""
        return self._failure.is_retryable

    @property
    def _failure(self) -> Failure:
        if self.status is not None:
            return failure_of(self.status)
        return BY_TYPE.get(self.error_type) or BY_CLI_NAME.get(self.error_type) or BY_STATUS[400]

    def _advice(self) -> str:
        return self._failure.advice if self.status is None else advice_of(self.status)


class PlanLimitError(APIError):
    """A used-up window of the plan: requests are rejected until its reset. A throttle of seconds is none."""

    limits: RateLimits
    """All limits in the response."""
    resets_at: datetime
    """Time of the window reset."""

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
        return plan_limit_advice(self.limits, self.resets_at)


def _seconds_until(time: datetime) -> float:
    return (time - datetime.now(UTC)).total_seconds()
