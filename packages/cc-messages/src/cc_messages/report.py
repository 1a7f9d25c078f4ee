"""A report about the handling of a request, for which the Messages API has no field."""

from dataclasses import dataclass

from cc_types import RateLimits

__all__ = ["RequestReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReport:
    """Facts about the handling of a request; after retries by the client, about the last attempt."""

    process_started: bool
    """True if it waited for a process to start and got it; otherwise the process was warm, or had served others."""
    wait_seconds: float
    """The wait for a process, in seconds, a start included."""
    queue_length: int
    """The number of requests that waited for a process before it."""
    rate_limits: RateLimits | None = None
    """The limits, as far as the API's response has them. In the CLI's own loop they can come after the answer."""
