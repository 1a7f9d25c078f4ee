"""What can go wrong between a caller and Claude Code: one base, and a class for each thing a caller can act on.

Every error takes facts as keyword arguments, keeps them as attributes and writes its own sentence, which says what
happened and what to do about it. Errors cross processes and survive `copy` and `pickle`, also subclasses with
constructors of their own. This module does not know who raises them, nor any SDK.
"""

import reprlib
import signal as signals
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .json_value import JsonValue

__all__ = [
    "CLIConnectionError",
    "CLIJSONDecodeError",
    "CLINotFoundError",
    "ClaudeCodeError",
    "ControlRequestError",
    "ControlTimeoutError",
    "MessageParseError",
    "ProcessExitedError",
]

# A crash report ends with its cause, and an exception should not carry megabytes of log.
_STDERR_TAIL_CHARACTERS = 4_000
_EXCERPT_CHARACTERS = 100

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 200


class ClaudeCodeError(Exception):
    """Something between the caller and Claude Code failed. The base of every error of these packages."""

    def __init__(self, message: str) -> None:
        super().__init__(message)

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={_repr.repr(fact)}" for name, fact in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({facts or _repr.repr(str(self))})"

    def __reduce__(self) -> tuple[Callable[..., "ClaudeCodeError"], tuple[object, ...], Mapping[str, object]]:
        # The default calls `type(self)(*self.args)`, which a constructor that takes keywords only cannot answer.
        return _restore, (type(self), self.args), vars(self)


def _restore(kind: type[ClaudeCodeError], args: tuple[object, ...]) -> ClaudeCodeError:
    error = kind.__new__(kind, *args)
    error.args = args  # `OSError.__new__` leaves it empty when a subclass has an `__init__`
    return error


class CLIConnectionError(ClaudeCodeError):
    """Claude Code cannot be reached: it did not start, has gone, or its pipes are closed."""

    reason: str
    """What happened, as a sentence without a full stop."""

    def __init__(
        self, *, reason: str, advice: str = "Start a new session, or look at what the CLI wrote to stderr."
    ) -> None:
        self.reason = reason
        super().__init__(f"{reason}. {advice}")


class CLINotFoundError(CLIConnectionError):
    """There is no Claude Code CLI where one was expected."""

    path: str | None
    """The path that was asked for, or `None` when the usual places were searched."""
    searched: tuple[str, ...]
    """The places that were searched, in order."""

    def __init__(self, *, path: str | None = None, searched: Sequence[str] = ()) -> None:
        self.path = path
        self.searched = tuple(searched)
        where = f" at {path}" if path else f" in {', '.join(self.searched)}" if self.searched else ""
        super().__init__(
            reason=f"Claude Code's CLI was not found{where}",
            advice="Install a claude-agent-sdk wheel for this platform, which brings the CLI, or give the path of one.",
        )


class ProcessExitedError(CLIConnectionError):
    """The CLI process ended while something was still expected of it."""

    exit_code: int | None
    """The exit code; negative for a signal, as `subprocess` has it; `None` if it is not known."""
    stderr_tail: str
    """The end of what the process wrote to stderr."""
    phase: str | None
    """What the process was doing, such as `initialize` or `turn`."""

    def __init__(self, *, exit_code: int | None, stderr_tail: str = "", phase: str | None = None) -> None:
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail[-_STDERR_TAIL_CHARACTERS:]
        self.phase = phase
        during = f" during {phase}" if phase else ""
        tail = self.stderr_tail.strip()
        super().__init__(
            reason=f"Claude Code {self._ending()}{during}",
            advice=f"{self._advice()} The end of its stderr:\n{tail}" if tail else self._advice(),
        )

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended the process, such as `SIGKILL`, if one did."""
        if self.exit_code is None:
            return None
        # A shell in between reports 128 + n where `subprocess` reports -n.
        number = -self.exit_code if self.exit_code < 0 else self.exit_code - 128
        return signals.Signals(number).name if number in _SIGNAL_NUMBERS else None

    def _ending(self) -> str:
        if self.exit_code is None:
            return "exited"
        name = self.signal
        return f"was ended by {name}" if name else f"exited with code {self.exit_code}"

    def _advice(self) -> str:
        if self.signal == "SIGKILL":
            return "The system may have run out of memory: run fewer processes at once, or allow more memory."
        if self.stderr_tail.strip():
            return "Fix what it complains about, then start a new session."
        return "It wrote nothing to stderr: run the CLI by hand with the same options to see why."


_SIGNAL_NUMBERS = frozenset(int(number) for number in signals.Signals)


class CLIJSONDecodeError(ClaudeCodeError):
    """The CLI wrote a line that is not JSON."""

    line: str
    """The line, as received."""
    reason: str
    """What the decoder said."""

    def __init__(self, *, line: str, reason: str) -> None:
        self.line = line
        self.reason = reason
        super().__init__(
            f"Claude Code wrote a line of {len(line)} characters that is not JSON ({reason}): {_excerpt(line)}. "
            "Keep everything but the CLI from writing to its stdout, then start a new session."
        )


class MessageParseError(ClaudeCodeError):
    """The CLI sent JSON that is not a message this version understands."""

    reason: str
    """What is missing or wrong."""
    data: "JsonValue"
    """The message, as received."""

    def __init__(self, *, reason: str, data: "JsonValue" = None) -> None:
        self.reason = reason
        self.data = data
        super().__init__(
            f"Claude Code sent a message that cannot be read: {reason}. "
            "Use the CLI version that these packages were tested with; the message is in `data`."
        )


class ControlTimeoutError(ClaudeCodeError, TimeoutError):
    """The CLI did not answer a control request in time."""

    subtype: str
    """Which control request, such as `initialize` or `interrupt`."""
    seconds: float
    """How long the answer was waited for."""

    def __init__(self, *, subtype: str, seconds: float) -> None:
        self.subtype = subtype
        self.seconds = seconds
        super().__init__(
            f"Claude Code did not answer the control request {subtype!r} within {seconds:g} seconds. "
            "Allow more time if the machine is busy; otherwise the process hangs and should be replaced."
        )


class ControlRequestError(ClaudeCodeError):
    """The CLI refused a control request."""

    subtype: str
    """Which control request."""
    message: str
    """What the CLI answered."""

    def __init__(self, *, subtype: str, message: str) -> None:
        self.subtype = subtype
        self.message = message
        super().__init__(
            f"Claude Code refused the control request {subtype!r}: {message.rstrip('.')}. "
            "Send it in a state that allows it, or use a CLI version that knows it."
        )


def _excerpt(line: str) -> str:
    return repr(line if len(line) <= _EXCERPT_CHARACTERS else f"{line[:_EXCERPT_CHARACTERS]}…")
