"""From what went wrong with Claude Code to the errors that users of pydantic-ai know.

Most of it is done below: an HTTP status gives `ModelHTTPError` as with any provider. This module adds what only an
adapter can know: what to do about it, and what the client's "Connection error." was about.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import anthropic
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError, ModelTimeoutError, UserError

from cc_messages import ERROR_EXTENSION
from cc_session import QueueTimeoutError, login_advice
from cc_types import ClaudeCodeError, CLINotFoundError

__all__ = ["ToolsetNotRegisteredError", "claude_code_errors"]

_HINTS = {
    403: "The login may not use this model or feature; use another one, or ask the account's administrator.",
    404: "Check the model's name; Claude Code also takes the aliases sonnet, opus and haiku.",
    429: "The account's rate limit is reached: wait, send fewer requests at once, or use FallbackModel.",
    500: "The failure is the API's: try again in a moment.",
    529: "The API is overloaded: try again in a moment, or use FallbackModel.",
}


class ToolsetNotRegisteredError(ClaudeCodeError):
    """A request offers tools that the CLI is to call, and no toolsets were set that have them."""

    tools: tuple[str, ...]
    """The names of the tools."""

    def __init__(self, *, tools: Sequence[str]) -> None:
        self.tools = tuple(tools)
        super().__init__(
            f"Nobody would run the tools {', '.join(self.tools)}. Call set_agent_toolsets(agent.toolsets) first, or "
            "use request(), whose answer tells the caller which tools to run."
        )


@contextmanager
def claude_code_errors(model_name: str) -> Generator[None]:
    """Raise errors with what to do about them.

    Raises:
        UserError: There is no Claude Code CLI.
        ModelTimeoutError: No process came free in time; its `phase` is `"pool"`, its cause a `QueueTimeoutError`.
        ModelConnectionError: A process failed, or lost its connection to the API.
        ModelHTTPError: The API answered with an error; its `hint` says what to do.
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
            error = _with_hint(error, hint)
        # Without the client's error, which says the same once more.
        raise error from None
    except ModelConnectionError as error:
        cause = next((link for link in _causes(error) if isinstance(link, ClaudeCodeError)), None)
        if cause is None:
            raise
        # Without the links between, and without the frames of another thread: what counts is the class of the cause.
        cause = cause.with_traceback(None)
        if isinstance(cause, CLINotFoundError):
            raise UserError(str(cause)) from cause
        raise ModelConnectionError(model_name, str(cause), phase=error.phase, in_stream=error.in_stream) from cause


def _with_hint(error: ModelHTTPError, hint: str) -> ModelHTTPError:
    return type(error)(
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
