"""Conversion of Claude Code failures to the errors that pydantic-ai users know.

The layers below do most work: an HTTP status gives `ModelHTTPError` as with any provider. This module adds a hint for a
fix, and the cause of the client's "Connection error.", and watches the client's waits before a retry.
"""

import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, TypeVar, cast

import anthropic
import httpx2
from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelTimeoutError,
    UserError,
)
from typing_extensions import override

from cc_messages import ERROR_EXTENSION, retry_after
from cc_session import QueueTimeoutError
from cc_session.internals import login_advice
from cc_types import ClaudeCodeError, CLINotFoundError, PlanLimitError, RateLimits
from cc_types.failures import BY_STATUS, failure_of, plan_limit_advice

E = TypeVar("E", bound=ModelHTTPError)

logger = logging.getLogger(__name__)

_FALLBACK = "FallbackModel can ask another model."
_SHOULD_RETRY = "x-should-retry"
# The client itself sends this header, which counts from 0.
_RETRY_COUNT = "x-stainless-retry-count"


class ToolsetNotRegisteredError(ClaudeCodeError):
    """Request with function tools for the CLI, but without registered toolsets that have them."""

    tools: tuple[str, ...]
    """Tool names."""

    def __init__(self, *, tools: Sequence[str]) -> None:
        self.tools = tuple(tools)
        super().__init__(
            f"The tools {', '.join(self.tools)} have no toolset that runs them. Call "
            "set_agent_toolsets(agent.toolsets) first, or use request(): its answer says which tools to run."
        )


class ModelPlanLimitError(ModelHTTPError, ModelRateLimitError):
    """A used-up window of the plan: requests are rejected until its reset. A throttle for seconds is another error."""

    limits: RateLimits
    """All limits that the API reported."""

    @property
    def resets_at(self) -> datetime:
        """Reset time of the window."""
        return cast(datetime, self.limits.exhausted_until)

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "limits": self.limits}


@contextmanager
def claude_code_errors(model_name: str, advice_for_login: Callable[[], str] = login_advice) -> Generator[None]:
    """Convert errors, and add a hint for a fix. `advice_for_login` returns the hint after a refused login."""
    try:
        yield
    except ModelHTTPError as error:
        response = error.__cause__.response if isinstance(error.__cause__, anthropic.APIStatusError) else None
        cause = response and response.extensions.get(ERROR_EXTENSION)
        if isinstance(cause, QueueTimeoutError):
            raise ModelTimeoutError(model_name, str(cause), phase="pool") from cause.with_traceback(None)
        if isinstance(cause, PlanLimitError):
            hint = f"{plan_limit_advice(cause.limits, cause.resets_at)} {_FALLBACK}"
            error = _copy(error, ModelPlanLimitError, hint=hint, limits=cause.limits)
        elif error.hint is None and (hint := _hint(error, advice_for_login)) is not None:
            error = _copy(error, type(error), hint=hint or None)
        # Drop the client error, which repeats the same message.
        raise error from None
    except ModelConnectionError as error:
        cause = error.__cause__
        while cause is not None and not isinstance(cause, ClaudeCodeError):
            cause = cause.__cause__
        if cause is None:
            raise
        # Drop the links between, and another thread's frames: only the cause class counts.
        cause = cause.with_traceback(None)
        if isinstance(cause, CLINotFoundError):
            raise UserError(str(cause)) from cause
        raise ModelConnectionError(model_name, str(cause), phase=error.phase, in_stream=error.in_stream) from cause


def _hint(error: ModelHTTPError, advice_for_login: Callable[[], str]) -> str | None:
    """Return the hint for an error; empty if its message has the advice, and None if there is none."""
    failure = BY_STATUS.get(error.status_code)
    if failure is None:
        return None
    if error.status_code == 401:
        return "" if (advice := advice_for_login()) in str(error) else advice
    wait = "" if error.retry_after is None else f" The API asks to wait {error.retry_after:g} seconds."
    return f"{failure.advice}{wait} {_FALLBACK}" if failure.is_retryable else failure.advice


def _copy(error: ModelHTTPError, kind: type[E], **facts: object) -> E:
    """Return a copy of the error as a `kind`, with other facts: the state is that for pickle."""
    result = kind(error.status_code, error.model_name, error.body)
    result.__setstate__({**error.__getstate__(), **facts})
    return result


async def limit_wait(max_retries: int, max_seconds: float | None, response: httpx2.Response) -> None:
    """Log a wait before a retry in advance, and let none begin that is longer than `max_seconds`.

    The client itself waits as long as a `retry-after` says, and logs nothing.
    """
    if isinstance(response.extensions.get(ERROR_EXTENSION), QueueTimeoutError):
        response.headers[_SHOULD_RETRY] = "false"  # a retry would queue again, behind all others
    seconds = retry_after(response.headers)
    tries = int(response.request.headers.get(_RETRY_COUNT, "0")) + 1
    if not seconds or tries > max_retries or not _is_repeated(response):
        return
    reason = await _reason(response)
    if max_seconds is None or seconds <= max_seconds:
        logger.warning(
            "Waiting %g seconds before the request is repeated (%d of %d times), as the API asks: %s",
            seconds, tries, max_retries, reason,
        )  # fmt: skip
    else:
        response.headers[_SHOULD_RETRY] = "false"
        logger.warning(
            "The API asks to wait %g seconds, longer than max_retry_wait=%g, so the request is not repeated: %s",
            seconds, max_seconds, reason,
        )  # fmt: skip


def _is_repeated(response: httpx2.Response) -> bool:
    header = response.headers.get(_SHOULD_RETRY)
    if header in ("true", "false"):
        return header == "true"
    return failure_of(response.status_code).is_retryable


async def _reason(response: httpx2.Response) -> str:
    await response.aread()
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        # Not the message, which can quote the request.
        return f"{response.status_code} {response.json()['error']['type']}"
    return f"status {response.status_code}"
