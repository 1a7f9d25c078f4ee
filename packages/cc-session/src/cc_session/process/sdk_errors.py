"""Translation of the SDK's exceptions into ours."""

from collections.abc import Generator
from contextlib import contextmanager

import claude_agent_sdk as sdk

from cc_types import ClaudeCodeError, ControlTimeoutError

from ..errors import (
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    MessageParseError,
    ProcessExitedError,
    SDKMessageParseError,
)  # fmt: skip

__all__ = ["translated"]

# Start of the SDK's message that names the requested path.
_NOT_FOUND_AT = "Claude Code not found at: "

# Start of its message about an unanswered request, and its timeout. Our timeouts are usually shorter.
_TIMEOUT = "Control request timeout: "
_TIMEOUT_SECONDS = 60.0


@contextmanager
def translated() -> Generator[None]:
    """Raise the SDK's errors as `ClaudeCodeError`; others pass."""
    try:
        yield
    except ClaudeCodeError:
        raise
    except Exception as error:
        ours = _ours(error)
        if ours is None:
            raise
        raise ours from error


def _ours(error: Exception) -> ClaudeCodeError | None:
    match error:
        case sdk.CLINotFoundError():
            path = str(error).removeprefix(_NOT_FOUND_AT)
            return CLINotFoundError(path=path if path != str(error) else None)
        case sdk.ProcessError():
            return ProcessExitedError(exit_code=error.exit_code, stderr_tail=error.stderr or "")
        case sdk.CLIJSONDecodeError():
            return CLIJSONDecodeError(line=error.line, reason=str(error.original_error))
        case SDKMessageParseError():
            return MessageParseError(reason=str(error), data=getattr(error, "data", None))
        case _ if isinstance(error.__cause__, ClaudeCodeError):
            return error.__cause__
        # The SDK raises a bare `Exception` when its own control request was not answered, or refused.
        case _ if type(error) is Exception and str(error).startswith(_TIMEOUT):
            return ControlTimeoutError(subtype=str(error).removeprefix(_TIMEOUT), seconds=_TIMEOUT_SECONDS)
        case _ if isinstance(error, (sdk.ClaudeSDKError, ConnectionError)) or type(error) is Exception:
            return CLIConnectionError(reason=_reason(error))
        case _:
            return None


def _reason(error: Exception) -> str:
    """Return the SDK's sentence. At the end it quotes its cause, which may have no text."""
    words = str(error).strip().rstrip(". ")
    if words and not words.endswith(":"):
        return words
    cause = type(error.__cause__ or error).__name__
    return f"{words or 'Claude Code cannot be used:'} {cause}, without a reason"
