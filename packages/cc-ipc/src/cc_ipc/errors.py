"""Errors between the bridge and the parent process: a class for each case that a caller can handle differently.

`LocalProtocolError` means that nothing was sent, `RemoteProtocolError` that the peer broke the protocol. Every error
takes facts as keyword arguments and builds the message. The bridge process does not load this module, because the base
class imports pydantic.
"""

from collections.abc import Sequence

from cc_types import ClaudeCodeError

# The cause stands at the end of the output, and an exception should not carry megabytes of log.
_STDERR_TAIL_CHARACTERS = 4_000


class IPCError(ClaudeCodeError):
    """Base class for this package's errors."""


class LocalProtocolError(IPCError):
    """A message to be sent breaks the protocol. Nothing was sent."""


class RemoteProtocolError(IPCError):
    """The other side broke the protocol."""


class IPCConnectionError(IPCError):
    """The other side cannot be reached, or the connection ended."""

    path: str
    """Socket path."""
    reason: str
    """The cause, as a sentence without a full stop."""

    def __init__(
        self, *, path: str, reason: str, advice: str = "Check that the process that owns it still runs."
    ) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{reason} (socket {path}). {advice}")


class IPCMessageSizeError(IPCError):
    """A message is larger than allowed."""

    size: int
    """Payload size in bytes."""
    limit: int
    """Largest allowed payload in bytes."""

    def __init__(self, *, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        return f"A message has {self.size:,} bytes, and at most {self.limit:,} are allowed. Send smaller messages."


class LocalMessageSizeError(IPCMessageSizeError, LocalProtocolError):
    """A message to be sent is larger than allowed. Nothing was sent."""


class RemoteMessageSizeError(IPCMessageSizeError, RemoteProtocolError):
    """The other side announced a message that is larger than allowed. It was not read; close the connection."""

    def _sentence(self) -> str:
        return (
            f"The other side announced a message of {self.size:,} bytes, and at most {self.limit:,} are allowed. "
            "It must send smaller messages, or it does not speak this protocol."
        )


class UnencodableMessageError(LocalProtocolError):
    """A message to be sent cannot be encoded as JSON. Nothing was sent."""

    reason: str
    """The encoder message."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"A message cannot be written as JSON: {reason}. Use only values that JSON and UTF-8 can encode."
        )


class InvalidPayloadError(RemoteProtocolError):
    """The other side sent a payload that is not JSON. The frame was read whole, so the next frame can be read."""

    size: int
    """Payload size in bytes."""
    reason: str
    """The decoder message."""

    def __init__(self, *, size: int, reason: str) -> None:
        self.size = size
        self.reason = reason
        super().__init__(f"The other side sent {size:,} bytes that are not JSON: {reason}. It must send JSON in UTF-8.")


class InvalidRequestError(RemoteProtocolError):
    """The other side sent JSON that is not a valid request or response."""

    reason: str
    """The rule that the message breaks."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The other side sent an invalid message: {reason}.")


class UnknownMethodError(RemoteProtocolError):
    """The other side requested a method that does not exist."""

    method: str
    """The requested method."""

    def __init__(self, *, method: str) -> None:
        self.method = method
        super().__init__(f"The method {method!r} is not known; the only method is 'call_tool'.")


class ToolNotFoundError(IPCError):
    """No tool has this name."""

    name: str
    """The requested name."""
    known: tuple[str, ...]
    """The existing tools' names."""

    def __init__(self, *, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        names = ", ".join(self.known) or "none"
        super().__init__(f"The tool {name!r} is not known. Known tools: {names}.")


class InvalidToolResultError(IPCError):
    """A tool returned an invalid result."""

    reason: str
    """The rule that the result breaks."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The tool's result cannot be used: {reason}.")


class IPCToolExecutionError(IPCError):
    """The response to a call is an error: the tool raised, or could not be called."""

    tool: str
    """Tool name."""
    error_type: str
    """Class name of the exception on the other side."""
    message: str
    """Message of the exception."""

    def __init__(self, *, tool: str, error_type: str, message: str) -> None:
        self.tool = tool
        self.error_type = error_type
        self.message = message
        super().__init__(f"The tool {tool!r} failed with {error_type}: {message}")


class SessionStateError(IPCError):
    """The state of a session, server or client does not allow the operation."""

    state: str
    """The current state."""
    wanted: str
    """The requested operation."""

    def __init__(self, *, state: str, wanted: str) -> None:
        self.state = state
        self.wanted = wanted
        super().__init__(f"Cannot {wanted}: the state is {state!r}. Make a new session, server or client.")


class SocketPathError(IPCError):
    """A socket or schema file cannot be created at a path."""

    path: str
    """The path."""
    reason: str
    """The cause, as a sentence without a full stop."""

    def __init__(self, *, path: str, reason: str, advice: str = "Choose another path.") -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{reason} (path {path}). {advice}")


class TransportUnavailableError(IPCError):
    """No transport, or not the requested transport, can offer tools to the CLI here."""

    reason: str
    """The missing requirement."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Tools cannot be handed to the CLI: {reason}.")


class BridgeStartupError(IPCError):
    """The bridge process did not start, or did not answer."""

    command: tuple[str, ...]
    """The command that was run."""
    reason: str
    """The cause, as a sentence without a full stop."""
    stderr_tail: str
    """The last 4,000 characters from stderr."""

    def __init__(self, *, command: Sequence[str], reason: str, stderr_tail: str = "") -> None:
        self.command = tuple(command)
        self.reason = reason
        self.stderr_tail = stderr_tail[-_STDERR_TAIL_CHARACTERS:]
        tail = self.stderr_tail.strip()
        advice = f"The end of its stderr:\n{tail}" if tail else "It wrote nothing to stderr: run it by hand to see why."
        super().__init__(f"{reason} (command {' '.join(self.command)}). {advice}")
