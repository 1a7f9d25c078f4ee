"""Limits: on a session's waits, and on a pool's processes.

A hook has a `timeout` of its own, in `hooks/hook.py`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

from .identity import value_class

_NONE_IS_FOREVER = frozenset({"queue", "turn", "silence", "permission", "question"})


@value_class
@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Limits on a session's waits, in seconds. None, where allowed, means no limit.

    Raises:
        ValueError: A limit is not a positive, finite number.
        TypeError: A limit is not a number, or None where a limit is necessary.
    """

    connect: float = 30.0
    """From the spawn to the answer to `initialize`. On a busy machine with cold caches that takes a few seconds. The
    SDK waits for 60 s at most, or as long as this program's variable `CLAUDE_CODE_STREAM_CLOSE_TIMEOUT` says, in ms."""
    control: float = 10.0
    """The answer to a control request, or to a message that asks nothing. Both take milliseconds."""
    queue: float | None = 600.0
    """A lease's wait in the queue, and for a start if there is one. A pool too small for its work is busy for
    minutes."""
    turn: float | None = None
    """A whole turn of `run()` or `stream()`. None: only the caller knows how long its work takes."""
    silence: float | None = 300.0
    """A turn's time without a sign of life. An API that thinks without output can take minutes. API pings are signs of
    life; the CLI passes them on every ten seconds, so a shorter limit does not see them. While the CLI waits for a
    tool, a hook or a permission, the time does not count. The CLI has limits of its own on a silent API: half an
    hour; in sessions ten minutes up to an answer's head (`API_TIMEOUT_MS`); in a process that is not sealed three to
    six minutes."""
    hook: float = 30.0
    """The verdict of a policy's conditions on a call, for which the CLI waits. No limit on hooks: each has a `timeout`
    of its own."""
    mcp: float = 30.0
    """The start of a session's MCP servers. A program that is fetched first takes many seconds."""
    permission: float | None = None
    """The answer to a permission request. None: a person may have to give it."""
    question: float | None = 300.0
    """The answer of `Questions` to a question to the user, who may be away."""
    close: float = 2.0
    """The end of an abandoned turn, after which the process is discarded. Also the end of a process: for half the time
    it may end by itself, for the other half after a signal; then it is killed. Both take a few hundredths of a
    second."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value: object = getattr(self, field.name)
            if value is not None or field.name not in _NONE_IS_FOREVER:
                checked_seconds(value, field.name)


def checked_seconds(value: object, name: str) -> float:
    """Return a number of seconds; raise `ValueError` if it is not positive and finite, `TypeError` if not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"the timeout {name!r} must be a number of seconds, not {value!r}")
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"the timeout {name!r} must be a positive, finite number of seconds, not {value!r}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """Limits on a pool's processes: number, memory and time.

    Raises:
        ValueError: A limit is not positive, or `prewarm` is greater than `size`.
    """

    size: int = 4
    """Maximum number of processes. Each takes some 100 MB of unshared memory, and more in long use. For a request by
    a tool, processes that wait for tools do not count, and the first beside them starts at any memory."""
    prewarm: int = 1
    """Number of clean processes kept ready for the pool options, ahead of need."""
    start_limit: int = 2
    """Maximum number of simultaneous starts, which processors limit, too: a start takes one for a third of a second."""
    max_uses: int = 500
    """Number of leases after which a process is replaced."""
    max_rss_mb: float = 400
    """Resident memory, in megabytes, at which a returned process is replaced."""
    max_total_mb: float | None = None
    """Total memory, in megabytes, at which no more processes are started; shared pages count once. None means no
    limit."""
    idle_seconds: float = 300
    """Time without a lease after which a process is ended, except the processes that `prewarm` keeps."""

    @classmethod
    def of(cls, limits: "PoolLimits | int") -> "PoolLimits":
        """Return the limits; a number is the size, without processes ahead of need."""
        return limits if isinstance(limits, PoolLimits) else cls(size=limits, prewarm=0)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "prewarm" and value is not None and not value > 0:
                raise ValueError(f"{field.name} is {value}: it must be greater than 0")
        if not 0 <= self.prewarm <= self.size:
            raise ValueError(f"prewarm is {self.prewarm}: it must lie between 0 and the size, {self.size}")


def refuse_keywords(caller: str, names: Iterable[str], argument: str) -> None:
    """Raise `TypeError` for any of the `names`, keywords that `caller` lacks; limits belong into `argument`."""
    limits = {field.name for field in fields(PoolLimits)}
    for name in names:
        advice = f": use {argument}=PoolLimits({name}=...)" if name in limits else ""
        raise TypeError(f"{caller} got an unexpected keyword argument {name!r}{advice}")
