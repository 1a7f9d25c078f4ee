"""What can go wrong with a session, and what its caller can do wrong. How a turn can fail stands in `turn_errors.py`.

An error that cc-types has a class for, and claude-agent-sdk as well, is an instance of both: so code that was written
for either catches it. Their names here are those of cc-types. Two classes of the SDK's are taken from where it keeps
them; `tests/test_sdk_internals.py` notices when it moves them.
"""

from collections.abc import Sequence
from typing import Literal

import cc_types
import claude_agent_sdk
from cc_types import ClaudeCodeError, JsonValue
from claude_agent_sdk import Message
from claude_agent_sdk._errors import MessageParseError as SDKMessageParseError

__all__ = [
    "CLIConnectionError",
    "CLIJSONDecodeError",
    "CLINotFoundError",
    "MessageParseError",
    "ProcessExitedError",
    "SessionBusyError",
    "TurnTimeoutError",
    "UnknownToolCallError",
]


class CLIConnectionError(cc_types.CLIConnectionError, claude_agent_sdk.CLIConnectionError):
    """Claude Code cannot be reached: it did not start, has gone, or its pipes are closed."""

    retryable = False
    """Whether the same may succeed in a new session, with nothing else changed."""


class CLINotFoundError(cc_types.CLINotFoundError, claude_agent_sdk.CLINotFoundError):
    """There is no Claude Code CLI where one was expected."""

    retryable = False
    """Whether the same may succeed in a new session, with nothing else changed."""


class ProcessExitedError(cc_types.ProcessExitedError, claude_agent_sdk.ProcessError):
    """The CLI process ended while something was still expected of it."""

    stderr: str | None
    """The same as `stderr_tail`, under the SDK's name."""

    def __init__(self, *, exit_code: int | None, stderr_tail: str = "", phase: str | None = None) -> None:
        super().__init__(exit_code=exit_code, stderr_tail=stderr_tail, phase=phase)
        # The SDK's class has set its own, to nothing.
        self.exit_code, self.stderr = exit_code, self.stderr_tail

    @property
    def retryable(self) -> bool:
        """Whether the same may succeed in a new session: one that ends by itself while it starts does so again."""
        return self.phase != "connect" or self.signal is not None


class CLIJSONDecodeError(cc_types.CLIJSONDecodeError, claude_agent_sdk.CLIJSONDecodeError):
    """The CLI wrote a line that is not JSON, or too long."""

    retryable = False
    """Whether the same may succeed in a new session, with nothing else changed."""

    def __init__(self, *, line: str, reason: str) -> None:
        ClaudeCodeError.__init__
        self.original_error: Exception = ValueError(reason)
        super().__init__(line=line, reason=reason)


class MessageParseError(cc_types.MessageParseError, SDKMessageParseError):
    """The CLI sent JSON that is not a message this version understands."""

    retryable = False


class SessionBusyError(ClaudeCodeError):
    """A session was given a message while it still answers another one."""

    def __init__(self) -> None:
        super().__init__(
            "This session still answers another message, and it answers one at a time. Read that answer up to its "
            "result, or rewind or close the session; use another session to ask at the same time."
        )
