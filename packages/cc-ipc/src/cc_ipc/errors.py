"""What can go wrong between the bridge and its parent, one class for each thing a caller can act on.

Faults of this side and of the other side are different classes: `LocalProtocolError` means that nothing was sent,
`RemoteProtocolError` that the peer did what the protocol forbids. Every error takes facts as keyword arguments and
writes its own sentence. This module does not know who raises them. It is not loaded in the bridge process, for its
base class comes with pydantic.
"""

from collections.abc import Sequence

from cc_types import ClaudeCodeError

__all__ = [
    "BridgeStartupError",
    "IPCConnectionError",
    "IPCError",
    "IPCMessageSizeError",
    "IPCToolExecutionError",
    "InvalidPayloadError",
    "InvalidRequestError",
    "InvalidToolResultError",
    "LocalMessageSizeError",
    "LocalProtocolError",
    "RemoteMessageSizeError",
    "RemoteProtocolError",
    "SessionStateError",
    "SocketPathError",
    "ToolNotFoundError",
    "TransportUnavailableError",
    "UnencodableMessageError",
    "UnknownMethodError",
]

# A report ends with its cause, and an exception should not carry megabytes of log.
_STDERR_TAIL_CHARACTERS = 4_000


class IPCError(ClaudeCodeError):
    """Something between the bridge and its parent failed. The base of the other errors here."""


class LocalProtocolError(IPCError):
    """This side was asked to send what the protocol forbids. Nothing was sent."""


class RemoteProtocolError(IPCError):
    """The other side broke the protocol."""


class IPCConnectionError(IPCError):
    """The other side cannot be reached, or has gone."""

    path: str
    """The socket."""
    reason: str
    """What happened, as a sentence without a full stop."""

    def __init__(
        self, *, path: str, reason: str, advice: str = "See that the process that owns it still runs."
    ) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{reason} (socket {path}). {advice}")


class IPCMessageSizeError(IPCError):
    """A message is larger than allowed."""

    size: int
    """Bytes of the payload."""
    limit: int
    """Bytes that are allowed."""

    def __init__(self, *, size: int, limit: int) -> None:
        self.size = size
        self.limit = limit
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        return f"A message has {self.size:,} bytes, and at most {self.limit:,} are allowed. Send less at once."


class LocalMessageSizeError(IPCMessageSizeError, LocalProtocolError):
    """A message to be sent is larger than allowed. Nothing was sent."""


class RemoteMessageSizeError(IPCMessageSizeError, RemoteProtocolError):
    """The other side announced a message that is larger than allowed. It was not read; the connection is of no use."""

    def _sentence(self) -> str:
        return (
            f"The other side announced a message of {self.size:,} bytes, and at most {self.limit:,} are allowed. "
            "It must send less at once, or is no peer of this protocol."
        )


class UnencodableMessageError(LocalProtocolError):
    """A message to be sent cannot be written as JSON. Nothing was sent."""

    reason: str
    """What the encoder said."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"A message cannot be written as JSON: {reason}. Use what JSON and UTF-8 can say.")


class InvalidPayloadError(RemoteProtocolError):
    """The other side sent a payload that is not JSON. The frame was read whole; the next one can be."""

    size: int
    """Bytes of the payload."""
    reason: str
    """What the decoder said."""

    def __init__(self, *, size: int, reason: str) -> None:
        self.size = size
        self.reason = reason
        super().__init__(f"The other side sent {size:,} bytes that are not JSON: {reason}. It must send JSON in UTF-8.")


class InvalidRequestError(RemoteProtocolError):
    """The other side sent JSON that is not the message it should be."""

    reason: str
    """What is missing or wrong."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The other side sent a message that cannot be understood: {reason}.")


class UnknownMethodError(RemoteProtocolError):
    """The other side asked for a method that does not exist."""

    method: str
    """The method."""

    def __init__(self, *, method: str) -> None:
        self.method = method
        super().__init__(f"The method {method!r} is not known; the only one is 'call_tool'.")


class ToolNotFoundError(IPCError):
    """There is no tool of this name."""

    name: str
    """The name that was asked for."""
    known: tuple[str, ...]
    """The names there are."""

    def __init__(self, *, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = tuple(known)
        names = ", ".join(self.known) or "none"
        super().__init__(f"The tool {name!r} is not known. Known tools: {names}.")


class InvalidToolResultError(IPCError):
    """A tool returned what is not a tool result."""

    reason: str
    """What is missing or wrong."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The tool's result cannot be used: {reason}.")


class IPCToolExecutionError(IPCError):
    """The call was answered with an error: the tool raised, or could not be called."""

    tool: str
    """Name of the tool."""
    error_type: str
    """Class name of the exception that was raised on the other side."""
    message: str
    """What that exception said."""

    def __init__(self, *, tool: str, error_type: str, message: str) -> None:
        self.tool = tool
        self.error_type = error_type
        self.message = message
        super().__init__(f"The tool {tool!r} failed with {error_type}: {message}")


class SessionStateError(IPCError):
    """A session, server or client was asked for what its state does not allow."""

    state: str
    """The state it is in."""
    wanted: str
    """What was asked for."""

    def __init__(self, *, state: str, wanted: str) -> None:
        self.state = state
        self.wanted = wanted
        super().__init__(f"It cannot {wanted}, for it is {state}. Make a new one.")


class SocketPathError(IPCError):
    """A socket or schema file cannot be made where it should be."""

    path: str
    """Where it should be."""
    reason: str
    """What is in the way, as a sentence without a full stop."""

    def __init__(self, *, path: str, reason: str, advice: str = "Choose another path.") -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{reason} (path {path}). {advice}")


class TransportUnavailableError(IPCError):
    """There is no way to hand tools to the CLI here."""

    reason: str
    """What is missing."""

    def __init__(self, *, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Tools cannot be handed to the CLI: {reason}.")


class BridgeStartupError(IPCError):
    """The bridge process did not start, or did not answer."""

    command: tuple[str, ...]
    """The command that was run."""
    reason: str
    """What happened, as a sentence without a full stop."""
    stderr_tail: str
    """The end of what the process wrote to stderr."""

    def __init__(self, *, command: Sequence[str], reason: str, stderr_tail: str = "") -> None:
        self.command = tuple(command)
        self.reason = reason
        self.stderr_tail = stderr_tail[-_STDERR_TAIL_CHARACTERS:]
        tail = self.stderr_tail.strip()
        advice = f"The end of its stderr:\n{tail}" if tail else "It wrote nothing to stderr: run it by hand to see why."
        super().__init__(f"{reason} (command {' '.join(self.command)}). {advice}")
