"""A report of how a request was answered, which the Messages API has no place for."""

from dataclasses import dataclass

from cc_types import RateLimits

__all__ = ["RequestReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReport:
    """How a request was answered. Of one that the client repeated, how the last attempt was."""

    process_started: bool
    """Whether it waited for a process to start and got it; otherwise the process was warm, or had served others."""
    wait_seconds: float
    """How long it waited for a process, in seconds, a start included."""
    queue_length: int
    """How many requests waited for a process before it."""
    rate_limits: RateLimits | None = None
    """The limits, as far as the API's response tells them. In the CLI's own loop they can come after the answer."""
