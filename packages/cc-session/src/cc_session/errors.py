"""Errors of sessions and of their callers. Errors of turns are in `session/turn_errors.py`.

Where cc-types has a class for an error and claude-agent-sdk has one as well, what is raised is an instance of both:
code that was written for either catches it. The names here are those of cc-types. One class is taken from where the
SDK keeps it to itself; `tests/test_sdk_internals.py` notices when it moves.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import claude_agent_sdk as sdk
from claude_agent_sdk import Message
from claude_agent_sdk._errors import MessageParseError as SDKMessageParseError
from typing_extensions import override

import cc_types
from cc_types import ClaudeCodeError, JsonValue

__all__ = [
    "CLIConnectionError",
    "CLIJSONDecodeError",
    "CLINotFoundError",
    "HooksDisabledError",
    "McpServerFailedError",
    "MessageParseError",
    "ProcessExitedError",
    "QueueTimeoutError",
    "SDKMessageParseError",
    "SessionBusyError",
    "TurnTimeoutError",
    "UnknownToolCallError",
]


class _OwnFacts(Exception):
    """Stands between the two bases of a class and keeps the SDK's constructors from being called with our sentence."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)


class CLIConnectionError(cc_types.CLIConnectionError, _OwnFacts, sdk.CLIConnectionError):
    """Claude Code cannot be reached: it did not start, has gone, or its pipes are closed."""

    retryable = False
    """Whether the same may succeed in a new session, with nothing changed."""


class CLINotFoundError(cc_types.CLINotFoundError, _OwnFacts, sdk.CLINotFoundError):
    """There is no Claude Code CLI where one was expected."""

    retryable = False
    """Whether the same may succeed in a new session, with nothing changed."""


class ProcessExitedError(cc_types.ProcessExitedError, _OwnFacts, sdk.ProcessError):
    """The CLI process ended while something was still expected of it."""

    @property
    def retryable(self) -> bool:
        """Whether the same may succeed in a new session. A CLI that ends as it starts will do so again."""
        return self.phase != "connect" or self.signal is not None

    @property
    def stderr(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  # the SDK's is never set here
        """The same as `stderr_tail`, under the SDK's name."""
        return self.stderr_tail


class CLIJSONDecodeError(cc_types.CLIJSONDecodeError, _OwnFacts, sdk.CLIJSONDecodeError):
    """The CLI wrote a line that is not JSON, or one that is too long."""

    retryable = False
    """Whether the same may succeed in a new session, with nothing changed."""

    @property
    def original_error(self) -> Exception:  # pyright: ignore[reportIncompatibleVariableOverride]  # the SDK's is never set
        """The reason as an exception, as the SDK's class has it."""
        return ValueError(self.reason)


class MessageParseError(cc_types.MessageParseError, _OwnFacts, SDKMessageParseError):
    """The CLI sent JSON that is not a message this version understands."""

    data: JsonValue  # pyright: ignore[reportIncompatibleVariableOverride]  # what is no message may be no object either
    """The message, as received."""
    retryable = False
    """Whether the same may succeed in a new session, with nothing changed."""


class TurnTimeoutError(ClaudeCodeError, TimeoutError):
    """A turn took too long, and was left. The session can be used again when the turn has been ended."""

    limit: Literal["turn", "silence"]
    """What was exceeded: the time for the whole turn, or that without any sign of life from the CLI or the API."""
    seconds: float
    """How long that was."""
    messages: tuple[Message, ...]
    """What had come of the turn until then."""
    retryable = True
    """Whether the same may succeed later, with nothing changed."""

    def __init__(self, *, limit: Literal["turn", "silence"], seconds: float, messages: Sequence[Message] = ()) -> None:
        self.limit = limit
        self.seconds = seconds
        self.messages = tuple(messages)
        failure = "did not end" if limit == "turn" else "gave no sign of life"
        super().__init__(
            f"The turn {failure} within {seconds:g} seconds and was left. Timeouts({limit}=…) allows more time."
        )

    @override
    def __repr__(self) -> str:
        return f"TurnTimeoutError(limit={self.limit!r}, seconds={self.seconds!r}, messages=<{len(self.messages)}>)"


class QueueTimeoutError(ClaudeCodeError, TimeoutError):
    """No process of a pool came free in time. Nothing was sent, so the same may be asked again."""

    seconds: float
    """How long one was waited for."""
    size: int
    """How many processes the pool may have."""
    busy_seconds: tuple[float, ...]
    """For how many seconds each of the busy ones had been busy, the longest first."""
    waiting: int
    """How many leases waited, this one included."""
    retryable = True
    """Whether the same may succeed later, with nothing changed."""

    def __init__(self, *, seconds: float, size: int, busy_seconds: Sequence[float], waiting: int) -> None:
        self.seconds = seconds
        self.size = size
        self.busy_seconds = tuple(sorted(busy_seconds, reverse=True))
        self.waiting = waiting
        longest = f", the longest for {self.busy_seconds[0]:.1f} seconds" if self.busy_seconds else ""
        super().__init__(
            f"No Claude Code process came free within {seconds:g} seconds: {len(self.busy_seconds)} of {size} "
            f"processes were busy{longest}, and {waiting} requests waited. Allow more processes (`pool=` of "
            "ClaudeCodeProvider, `size=` of a transport or a SessionPool), send fewer requests at once, or allow more "
            "time with Timeouts(queue=...)."
        )


class SessionBusyError(ClaudeCodeError):
    """A session was given a message while it still answers another one."""

    def __init__(self) -> None:
        super().__init__(
            "This session still answers another message, and it answers one at a time. Read that answer up to its "
            "result, or rewind or close the session; use another session to ask at the same time."
        )


class HooksDisabledError(ClaudeCodeError):
    """A session was to have hooks or a policy, and the CLI would not heed them."""

    reason: str
    """Why not."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"Claude Code would not run this session's hooks: {reason}. Without them there is no policy either, so the "
            "session was not opened."
        )


class McpServerFailedError(ClaudeCodeError):
    """MCP servers that a session was to have are not connected."""

    servers: Mapping[str, str]
    """Their names, and what they or the CLI said."""
    retryable = True
    """Whether the same may succeed later, with nothing changed."""

    def __init__(self, servers: Mapping[str, str]) -> None:
        self.servers = dict(servers)
        words = "; ".join(f"{name}: {reason}" for name, reason in self.servers.items())
        super().__init__(f"MCP servers are not connected: {words}")


class UnknownToolCallError(ClaudeCodeError, KeyError):
    """No tool call with this id waits for an answer: it was answered already, was cancelled, or never made."""

    call_id: str
    """The id that was given."""

    # `KeyError` would show the sentence in quotes.
    __str__ = Exception.__str__

    def __init__(self, *, call_id: str) -> None:
        self.call_id = call_id
        super().__init__(
            f"No tool call {call_id!r} waits for an answer: it was answered already, was cancelled with its turn, or "
            "never made. Answer each call of `suspended` once."
        )
