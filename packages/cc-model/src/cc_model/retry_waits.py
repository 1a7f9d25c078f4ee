"""The client's waits before a retry: each is logged in advance, and a wait that is too long does not begin.

The client itself waits as long as a `retry-after` says, and logs nothing.
"""

import logging
from contextlib import suppress

import httpx2

from cc_messages import ERROR_EXTENSION, retry_after
from cc_session import QueueTimeoutError
from cc_types.failures import failure_of

__all__ = ["RetryWaits"]

logger = logging.getLogger(__name__)

_SHOULD_RETRY = "x-should-retry"
# The client itself sends this header, which counts from 0.
_RETRY_COUNT = "x-stainless-retry-count"
_MESSAGE_CHARACTERS = 200


class RetryWaits:
    """Response hook for the client's `httpx2` client.

    Args:
        max_retries: The client's number of retries.
        max_seconds: Longest wait that the API may ask for; None for no limit.

    Raises:
        ValueError: `max_seconds` is negative.
    """

    def __init__(self, max_retries: int, max_seconds: float | None) -> None:
        if max_seconds is not None and not max_seconds >= 0:
            raise ValueError(f"max_retry_wait must be a number of seconds from 0 on, or None, not {max_seconds!r}")
        self._max_retries = max_retries
        self._max_seconds = max_seconds

    async def __call__(self, response: httpx2.Response) -> None:
        """Check a response before the client does."""
        if isinstance(response.extensions.get(ERROR_EXTENSION), QueueTimeoutError):
            response.headers[_SHOULD_RETRY] = "false"  # a retry would queue again, behind all others
        seconds = retry_after(response.headers)
        tries = int(response.request.headers.get(_RETRY_COUNT, "0")) + 1
        if not seconds or tries > self._max_retries or not _is_repeated(response):
            return
        reason = await _reason(response)
        if self._max_seconds is None or seconds <= self._max_seconds:
            logger.warning(
                "Waiting %g seconds before the request is repeated (%d of %d times), as the API asks: %s",
                seconds, tries, self._max_retries, reason,
            )  # fmt: skip
        else:
            response.headers[_SHOULD_RETRY] = "false"
            logger.warning(
                "The API asks to wait %g seconds, longer than max_retry_wait=%g, so the request is not repeated: %s",
                seconds, self._max_seconds, reason,
            )  # fmt: skip


def _is_repeated(response: httpx2.Response) -> bool:
    header = response.headers.get(_SHOULD_RETRY)
    if header in ("true", "false"):
        return header == "true"
    return failure_of(response.status_code).is_retryable


async def _reason(response: httpx2.Response) -> str:
    await response.aread()
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        error = response.json()["error"]
        return f"{response.status_code} {error['type']}: {' '.join(error['message'].split())[:_MESSAGE_CHARACTERS]}"
    return f"status {response.status_code}"
