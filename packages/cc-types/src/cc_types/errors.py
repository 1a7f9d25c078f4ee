"""Exceptions for failures between a caller and Claude Code: a base, and a class for each reaction by a caller.

Every error takes facts as keyword arguments, stores them as attributes and builds its own message: the failure, and the
action to take. Errors can be sent between processes and survive `copy` and `pickle`, also subclasses with other
constructors. This module depends on neither SDKs nor callers.
"""

import reprlib
import signal as signals
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue

# Limits the message: a crash report needs only the last lines, and an exception should not hold megabytes of log.
_STDERR_TAIL_CHARACTERS = 4_000
_EXCERPT_CHARACTERS = 100

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 200


class ClaudeCodeError(Exception):
    """A failure between the caller and Claude Code. The base class for all errors in these packages."""

    def __init__(self, message: str) -> None:
        super().__init__(message)

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={_repr.repr(fact)}" for name, fact in vars(self).items() if not name.startswith("_"))
        return f"{type(self).__name__}({facts or _repr.repr(str(self))})"

    def __reduce__(self) -> tuple[Callable[..., "ClaudeCodeError"], tuple[object, ...], Mapping[str, object]]:
        # The default calls `type(self)(*self.args)`, which fails for a constructor with keyword arguments only.
        return _restore, (type(self), self.args), vars(self)


def _restore(kind: type[ClaudeCodeError], args: tuple[object, ...]) -> ClaudeCodeError:
    error = kind.__new__(kind, *args)
    error.args = args  # `OSError.__new__` leaves it empty when a subclass has an `__init__`
    return error


class CLIConnectionError(ClaudeCodeError):
    """Claude Code cannot be reached: it did not start, it has exited, or its pipes are closed."""

    reason: str
    """The failure, as a sentence without a full stop."""

    def __init__(self, *, reason: str, advice: str = "Start a new session, or read the CLI's stderr.") -> None:
        self.reason = reason
        super().__init__(f"{reason}. {advice}")


class CLINotFoundError(CLIConnectionError):
    """The Claude Code CLI was not found."""

    path: str | None
    """The path that was given, or `None` when the usual places were searched."""
    searched: tuple[str, ...]
    """The places that were searched, in order."""

    def __init__(
        self,
        *,
        path: str | None = None,
        searched: Sequence[str] = (),
        advice: str = "Install a claude-agent-sdk wheel for this platform, which brings the CLI, or set cli_path.",
    ) -> None:
        self.path = path
        self.searched = tuple(searched)
        where = f" at {path}" if path else f" in {', '.join(self.searched)}" if self.searched else ""
        super().__init__(reason=f"Claude Code's CLI was not found{where}", advice=advice)


class ProcessExitedError(CLIConnectionError):
    """The CLI process exited before its work was done."""

    exit_code: int | None
    """The exit code; negative for a signal, as in `subprocess`; `None` if unknown."""
    stderr_tail: str
    """The last 4,000 characters in the process stderr."""
    phase: str | None
    """The phase in which the process exited, such as `connect` or `turn`."""

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
        """Return the name of the signal that ended the process, such as `SIGKILL`, or `None`."""
        if self.exit_code is None:
            return None
        # A shell between us and the CLI reports 128 + n where `subprocess` reports -n.
        number = -self.exit_code if self.exit_code < 0 else self.exit_code - 128
        return next((signal.name for signal in signals.Signals if signal == number), None)

    def _ending(self) -> str:
        if self.exit_code is None:
            return "exited"
        name = self.signal
        return f"was ended by {name}" if name else f"exited with code {self.exit_code}"

    def _advice(self) -> str:
        if self.signal == "SIGKILL":
            return "The system may have run out of memory: run fewer processes at once, or allow more memory."
        if self.stderr_tail.strip():
            return "Fix the problem that its stderr reports, then start a new session."
        return "It wrote nothing to stderr: run the CLI by hand with the same options to see why."


class CLIJSONDecodeError(ClaudeCodeError):
    """The CLI wrote a line that is not JSON."""

    line: str
    """The line, as received."""
    reason: str
    """The JSON decoder message."""

    def __init__(self, *, line: str, reason: str) -> None:
        self.line = line
        self.reason = reason
        excerpt = line if len(line) <= _EXCERPT_CHARACTERS else f"{line[:_EXCERPT_CHARACTERS]}…"
        super().__init__(
            f"Claude Code wrote a line of {len(line)} characters that is not JSON ({reason}): {excerpt!r}. "
            "Keep everything but the CLI from writing to its stdout, then start a new session."
        )


class MessageParseError(ClaudeCodeError):
    """The CLI sent JSON that is not a message known to this version."""

    reason: str
    """The missing or invalid part."""
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
    """The CLI did not answer a control request before the timeout."""

    subtype: str
    """The control request subtype, such as `initialize` or `interrupt`."""
    seconds: float
    """The timeout in seconds."""

    def __init__(self, *, subtype: str, seconds: float) -> None:
        self.subtype = subtype
        self.seconds = seconds
        super().__init__(
            f"Claude Code did not answer the control request {subtype!r} within {seconds:g} seconds. "
            "Allow more time if the machine is busy; otherwise the process hangs and should be replaced."
        )


class ControlRequestError(ClaudeCodeError):
    """The CLI rejected a control request."""

    subtype: str
    """The control request subtype."""
    message: str
    """The CLI error message."""

    def __init__(self, *, subtype: str, message: str) -> None:
        self.subtype = subtype
        self.message = message
        super().__init__(
            f"Claude Code refused the control request {subtype!r}: {message.rstrip('.')}. "
            "Send it in a state that allows it, or use a CLI version that knows it."
        )
