"""Conversion of Claude Code's failures to the errors that users of pydantic-ai know.

The layers below do most of it: an HTTP status gives `ModelHTTPError` as with any provider. This module adds the
knowledge of an adapter: a hint for a fix, and the cause of the client's "Connection error.".
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar, cast

import anthropic
from pydantic_ai.exceptions import (
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelTimeoutError,
    UserError,
)
from typing_extensions import override

from cc_messages import ERROR_EXTENSION, RequestReport
from cc_session import QueueTimeoutError
from cc_session.internals import login_advice
from cc_types import ClaudeCodeError, CLINotFoundError, RateLimits

__all__ = ["ModelPlanLimitError", "ToolsetNotRegisteredError", "claude_code_errors", "with_plan_limit"]

E = TypeVar("E", bound=ModelHTTPError)

_TOO_MANY = 429
_HINTS = {
    403: "The login may not use this model or feature; use another one, or ask the account's administrator.",
    404: "Check the model's name; Claude Code also takes the aliases sonnet, opus and haiku.",
    429: "The account's rate limit is reached: wait, send fewer requests at once, or use FallbackModel.",
    500: "The failure is the API's: try again in a moment.",
    529: "The API is overloaded: try again in a moment, or use FallbackModel.",
}


class ToolsetNotRegisteredError(ClaudeCodeError):
    """Request with function tools for the CLI, but without registered toolsets that have them."""

    tools: tuple[str, ...]
    """Names of the tools."""

    def __init__(self, *, tools: Sequence[str]) -> None:
        self.tools = tuple(tools)
        super().__init__(
            f"The tools {', '.join(self.tools)} have no toolset that runs them. Call "
            "set_agent_toolsets(agent.toolsets) first, or use request(): its answer says which tools to run."
        )


class ModelPlanLimitError(ModelHTTPError, ModelRateLimitError):
    """Refusal of requests until an exhausted window of the plan is reset. A throttle of seconds does not raise it."""

    limits: RateLimits
    """All limits that the API reported."""

    @property
    def resets_at(self) -> datetime:
        """Time of the window's reset."""
        return cast(datetime, self.limits.exhausted_until)

    @override
    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "limits": self.limits}

    @override
    def __setstate__(self, state: dict[str, Any]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().__setstate__(state)
        self.limits = state["limits"]


def with_plan_limit(error: ModelHTTPError, report: RequestReport | None) -> ModelHTTPError:
    """Return the error, as a `ModelPlanLimitError` if a window of the plan is used up."""
    limits = None if report is None else report.rate_limits
    window = None if limits is None else limits.exhausted
    if error.status_code != _TOO_MANY or limits is None or window is None or limits.exhausted_until is None:
        return error
    hint = (
        f"The plan's limit {window.kind} is used up until {limits.exhausted_until:%Y-%m-%d %H:%M} UTC: wait until "
        "then, or use FallbackModel."
    )
    refused = _with_hint(error, hint, ModelPlanLimitError)
    refused.limits = limits
    return refused


@contextmanager
def claude_code_errors(model_name: str) -> Generator[None]:
    """Convert errors, and add a hint for a fix.

    Raises:
        UserError: There is no Claude Code CLI.
        ModelTimeoutError: No process became free in time; its `phase` is `"pool"`, its cause a `QueueTimeoutError`.
        ModelConnectionError: A process failed, or lost its connection to the API.
        ModelHTTPError: The API answered with an error; its `hint` suggests a fix. `ModelPlanLimitError` if a window of
            the plan is used up.
    """
    try:
        yield
    except ModelHTTPError as error:
        response = error.__cause__.response if isinstance(error.__cause__, anthropic.APIStatusError) else None
        told = response and response.extensions.get(ERROR_EXTENSION)
        if isinstance(told, QueueTimeoutError):
            raise ModelTimeoutError(model_name, str(told), phase="pool") from told.with_traceback(None)
        hint = login_advice() if error.status_code == 401 else _HINTS.get(error.status_code)
        if hint is not None and error.hint is None:
            error = _with_hint(error, hint, type(error))
        # Drop the client's error, which repeats the same message.
        raise error from None
    except ModelConnectionError as error:
        cause = next((link for link in _causes(error) if isinstance(link, ClaudeCodeError)), None)
        if cause is None:
            raise
        # Drop the links between, and the frames of another thread: only the class of the cause counts.
        cause = cause.with_traceback(None)
        if isinstance(cause, CLINotFoundError):
            raise UserError(str(cause)) from cause
        raise ModelConnectionError(model_name, str(cause), phase=error.phase, in_stream=error.in_stream) from cause


def _with_hint(error: ModelHTTPError, hint: str, kind: type[E]) -> E:
    return kind(
        error.status_code,
        error.model_name,
        error.body,
        headers=error.headers,
        suggested_model_id=error.suggested_model_id,
        hint=hint,
        provider_error_code=error.provider_error_code,
        provider_error_type=error.provider_error_type,
        retry_after=error.retry_after,
        in_stream=error.in_stream,
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__
