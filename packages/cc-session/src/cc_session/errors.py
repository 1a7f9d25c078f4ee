"""Errors that sessions and pools raise. A failed turn error is in `session/turn.py`.

Where cc-types and claude-agent-sdk both have a class for an error, the raised error is an instance of both: code
written for either catches it. The names here are those in cc-types.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import claude_agent_sdk as sdk
from claude_agent_sdk import Message
from typing_extensions import override

import cc_types
from cc_types import ClaudeCodeError, JsonValue

from .sdk import MessageParseError as SDKMessageParseError

# By the CLI names for the causes. The administrator settings are the cause of those that are not here.
_START_ADVICE = {
    "cli_version_too_old": "Upgrade claude-agent-sdk, which brings a newer CLI, or set cli_path to a newer one.",
    "config_file_invalid": "Correct the file, or delete it.",
    "cwd_unavailable": "Set cwd to another folder.",
    "proxy_invalid": "Correct the variable in `env` or in this program's environment.",
    "sandbox_required_unavailable": "Install what it names, or leave the sandbox out.",
    "temp_dir_unusable": "Set CLAUDE_CODE_TMPDIR to a folder that this user alone can write to.",
}
_ADMINISTRATOR = "Ask the administrator of this organization or machine, whose settings for Claude Code prevent it."


class _OwnFacts(Exception):
    """Base between the two others: it keeps the SDK constructors from being called with our sentence."""

    retryable = False
    """True if a retry in a new session may succeed, unchanged."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)


class CLIConnectionError(cc_types.CLIConnectionError, _OwnFacts, sdk.CLIConnectionError):
    """Claude Code cannot be reached: it did not start, has ended, or its pipes are closed."""


class CLINotFoundError(cc_types.CLINotFoundError, _OwnFacts, sdk.CLINotFoundError):
    """No Claude Code CLI at the expected place."""


class ProcessExitedError(cc_types.ProcessExitedError, _OwnFacts, sdk.ProcessError):
    """The CLI process ended before its work was complete."""

    @property
    def retryable(self) -> bool:
        """True if a retry in a new session may succeed. A CLI that ends as it starts will do so again."""
        return self.phase != "connect" or self.signal is not None

    @property
    def stderr(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  # the SDK's is never set here
        """Alias for `stderr_tail`, under the SDK name."""
        return self.stderr_tail


class StartFailedError(ProcessExitedError):
    """Claude Code refused to start and named the cause, or another program was started."""

    cause: str
    """Claude Code's name for the cause, such as `"proxy_invalid"`; or `"not_claude_code"`."""

    def __init__(
        self, *, cause: str, message: str, exit_code: int | None, stderr_tail: str = "", advice: str | None = None
    ) -> None:
        super().__init__(exit_code=exit_code, stderr_tail=stderr_tail, phase="connect")
        self.cause = cause
        reason = f"Claude Code did not start ({cause}): {message.strip().rstrip('.')}"
        advice = advice or _START_ADVICE.get(cause, _ADMINISTRATOR)
        cc_types.CLIConnectionError.__init__(self, reason=reason, advice=advice)


class CLIJSONDecodeError(cc_types.CLIJSONDecodeError, _OwnFacts, sdk.CLIJSONDecodeError):
    """The CLI wrote a line that is not JSON, or is too long."""

    @property
    def original_error(self) -> Exception:  # pyright: ignore[reportIncompatibleVariableOverride]  # the SDK's is never set
        """Reason as an exception, as in the SDK class."""
        return ValueError(self.reason)


class MessageParseError(cc_types.MessageParseError, _OwnFacts, SDKMessageParseError):
    """The CLI sent JSON that is not a message this version understands."""

    data: JsonValue  # pyright: ignore[reportIncompatibleVariableOverride]  # an invalid message may be any JSON value
    """The message, as received."""


class TurnTimeoutError(ClaudeCodeError, TimeoutError):
    """A turn took too long, and was abandoned. The session can be used again when the turn has been ended."""

    limit: Literal["turn", "silence"]
    """Exceeded limit: on the whole turn, or on the time without any sign of life from the CLI or the API."""
    seconds: float
    """That limit in seconds."""
    messages: tuple[Message, ...]
    """Messages received until then."""
    retryable = True
    """True if a retry may succeed later, unchanged."""

    def __init__(self, *, limit: Literal["turn", "silence"], seconds: float, messages: Sequence[Message] = ()) -> None:
        self.limit, self.seconds = limit, seconds
        self.messages = tuple(messages)
        failure = "did not end" if limit == "turn" else "gave no sign of life"
        super().__init__(
            f"The turn {failure} within {seconds:g} seconds and was left. Timeouts({limit}=…) allows more time."
        )

    @override
    def __repr__(self) -> str:
        return f"TurnTimeoutError(limit={self.limit!r}, seconds={self.seconds!r}, messages=<{len(self.messages)}>)"


class QueueTimeoutError(ClaudeCodeError, TimeoutError):
    """A pool had no free process in time. Nothing was sent, so a retry is safe."""

    seconds: float
    """Seconds that the lease waited."""
    size: int
    """Maximum number of processes in the pool."""
    busy_seconds: tuple[float, ...]
    """Seconds that each busy process had been busy, the longest first."""
    waiting: int
    """Number of waiting leases, this lease included."""
    retryable = True
    """True if a retry may succeed later, unchanged."""

    def __init__(self, *, seconds: float, size: int, busy_seconds: Sequence[float], waiting: int) -> None:
        self.seconds, self.size = seconds, size
        self.busy_seconds = tuple(sorted(busy_seconds, reverse=True))
        self.waiting = waiting
        longest = f", the longest for {self.busy_seconds[0]:.1f} seconds" if self.busy_seconds else ""
        super().__init__(
            f"No Claude Code process came free within {seconds:g} seconds: {len(self.busy_seconds)} of {size} "
            f"processes were busy{longest}, and {waiting} requests waited. Allow more processes (`pool=` of "
            "ClaudeCodeProvider or a transport, PoolLimits(size=...) of a SessionPool), send fewer requests "
            "at once, or allow more time with Timeouts(queue=...)."
        )


class SessionBusyError(ClaudeCodeError):
    """A session got a message while it still answers another one."""

    def __init__(self) -> None:
        super().__init__(
            "This session still answers another message, and can answer only one at a time. Read that answer up to the "
            "result, or rewind or close the session; use another session to ask at the same time."
        )


class HooksDisabledError(ClaudeCodeError):
    """Hooks or a policy were given, but the CLI would not run them."""

    reason: str
    """Reason why hooks would not run."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"Claude Code would not run this session's hooks: {reason}. Without them there is no policy either, so the "
            "session was not opened."
        )


class McpServerFailedError(ClaudeCodeError):
    """Some MCP servers are not connected."""

    servers: Mapping[str, str]
    """Error message by server name, from the server or the CLI."""
    retryable = True
    """True if a retry may succeed later, unchanged."""

    def __init__(self, servers: Mapping[str, str]) -> None:
        self.servers = dict(servers)
        words = "; ".join(f"{name}: {reason}" for name, reason in self.servers.items())
        super().__init__(f"MCP servers are not connected: {words}")
