"""The seam where the SDK's exceptions become ours."""

from collections.abc import Generator
from contextlib import contextmanager

import claude_agent_sdk as sdk

from cc_types import (
    ClaudeCodeError,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    MessageParseError,
    ProcessExitedError,
)

__all__ = ["translated"]


@contextmanager
def translated() -> Generator[None]:
    """Raise the SDK's errors as `ClaudeCodeError`; others pass."""
    try:
        yield
    except ClaudeCodeError:
        raise
    except (sdk.ClaudeSDKError, UnicodeDecodeError, ConnectionError) as error:
        raise _ours(error) from error


def _ours(error: Exception) -> ClaudeCodeError:
    match error:
        case sdk.CLINotFoundError():
            return CLINotFoundError(path=str(error).rpartition(": ")[2] or None)
        case sdk.ProcessError():
            return ProcessExitedError(exit_code=error.exit_code, stderr_tail=error.stderr or "")
        case sdk.CLIJSONDecodeError():
            return CLIJSONDecodeError(line=error.line, reason=str(error.original_error))
        case sdk.ClaudeSDKError() if type(error).__name__ == "MessageParseError":  # the SDK does not export it
            return MessageParseError(reason=str(error), data=getattr(error, "data", None))
        case _ if isinstance(error.__cause__, ClaudeCodeError):
            return error.__cause__
        case _:
            return CLIConnectionError(reason=str(error).rstrip("."))
