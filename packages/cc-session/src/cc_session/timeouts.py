"""Bounds of a session's waits, in seconds."""

import math
from dataclasses import dataclass, fields

__all__ = ["Timeouts", "checked_seconds"]

_NONE_IS_FOREVER = frozenset({"queue", "turn", "silence", "permission"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Bounds of a session's waits, in seconds. None, where allowed, is no bound.

    Raises:
        ValueError: One is not a positive, finite number.
        TypeError: One is no number at all, or None where there must be a bound.
    """

    connect: float = 30.0
    """From the spawn to the answer of `initialize`. A busy machine with cold caches takes a few seconds."""
    control: float = 10.0
    """For the answer to one control request, or to a message that asks nothing. Both take milliseconds."""
    queue: float | None = 600.0
    """For a process of a pool: its time in the queue, and for a start if there is one. A pool that is too small for its
    work is busy for minutes."""
    turn: float | None = None
    """For a turn of `run()` or `stream()`, as a whole. None: only the caller knows how long its work takes."""
    silence: float | None = 300.0
    """Time of such a turn without a sign of life. An API that thinks without output can take minutes. Pings of the API
    are such signs; the CLI passes them on every ten seconds, so a shorter limit does not see them. The time of a tool,
    a hook or a permission does not count: that silence is not one of the CLI or the API."""
    hook: float = 30.0
    """For the verdict of a policy's conditions on one call. The CLI blocks meanwhile. Hooks have their own timeouts."""
    mcp: float = 30.0
    """For MCP servers of a session to be ready. A program that is fetched first takes many seconds."""
    permission: float | None = None
    """For the answer to a permission request. None: a person may have to give it."""
    close: float = 2.0
    """For the end of an abandoned turn, after which the process is discarded. And for the process to end: half of it by
    itself, the other half after it was told to; then it is killed. Both take a few hundredths of a second."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if value is not None or field.name not in _NONE_IS_FOREVER:
                checked_seconds(value, field.name)


def checked_seconds(value: object, name: str) -> float:
    """Return a number of seconds that is valid for a wait.

    Raises:
        ValueError: It is not positive and finite.
        TypeError: It is no number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"the timeout {name!r} must be a number of seconds, not {value!r}")
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"the timeout {name!r} must be a positive, finite number of seconds, not {value!r}")
    return value
