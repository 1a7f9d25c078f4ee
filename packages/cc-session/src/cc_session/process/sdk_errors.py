"""The errors of claude-agent-sdk as ours."""

from collections.abc import Generator
from contextlib import contextmanager

import claude_agent_sdk as sdk

from cc_types import ClaudeCodeError, ControlTimeoutError

from ..errors import CLIConnectionError, CLIJSONDecodeError, CLINotFoundError, MessageParseError, ProcessExitedError
from ..sdk import MessageParseError as SDKMessageParseError

# Start of the SDK message that names the requested path.
_NOT_FOUND_AT = "Claude Code not found at: "

# Start of the SDK message about an unanswered request, and the SDK timeout. Our timeouts are usually shorter.
_TIMEOUT = "Control request timeout: "
_TIMEOUT_SECONDS = 60.0


@contextmanager
def translated() -> Generator[None]:
    """Raise the SDK errors as `ClaudeCodeError`; others pass."""
    try:
        yield
    except Exception as error:
        if (ours := translate(error)) is error:
            raise
        raise ours from error


def translate(error: Exception) -> Exception:
    """Return an SDK error as a `ClaudeCodeError`, and each other error as it is."""
    match error:
        case ClaudeCodeError():
            return error
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
        # The SDK raises a bare `Exception` when the CLI did not answer, or refused, a control request from the SDK.
        case _ if type(error) is Exception and str(error).startswith(_TIMEOUT):
            return ControlTimeoutError(subtype=str(error).removeprefix(_TIMEOUT), seconds=_TIMEOUT_SECONDS)
        case _ if isinstance(error, (sdk.ClaudeSDKError, ConnectionError)) or type(error) is Exception:
            return CLIConnectionError(reason=_reason(error))
        case _:
            return error


def _reason(error: Exception) -> str:
    """Return the SDK sentence. At the end it quotes the cause, which may have no text."""
    sentence = str(error).strip().rstrip(". ")
    if sentence and not sentence.endswith(":"):
        return sentence
    cause = type(error.__cause__ or error).__name__
    return f"{sentence or 'Claude Code cannot be used:'} {cause}, without a reason"
