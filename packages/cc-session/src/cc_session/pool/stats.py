"""Figures of a pool's present and past work."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MAX_RECORDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStats:
    """Figures of a `SessionPool`: first the current ones, then the counts since its creation."""

    size: int
    """Maximum number of processes."""
    idle: int
    """Processes that are clean and wait for a lease."""
    busy: int
    """Leased processes."""
    resetting: int
    """Processes that are being reset to an empty conversation."""
    starting: int
    """Processes that are not ready yet."""
    waiting: int
    """Leases that wait for a process."""
    leases: int
    """Leases that got a session."""
    reuses: int
    """Leases among them that got a process from an earlier lease."""
    waits: int
    """Leases among them that waited: for a start, or until another lease ended."""
    waiting_seconds: float
    """Longest wait of a waiting lease so far; 0 if none waits."""
    expected_wait_seconds: float
    """Longest wait that a waiting lease has to expect, by the shortest of the last leases; 0 if none waits."""
    queue_seconds: tuple[float, ...]
    """Last wait times counted in `waits`, at most a hundred, in seconds."""
    queue_timeouts: int
    """Leases that got no session within `Timeouts.queue`."""
    starts: int
    """Processes started."""
    failed_starts: int
    """Processes that could not be started."""
    resets: int
    """Resets to an empty conversation."""
    recycled: Mapping[str, int]
    """Number of ended processes per reason: see `SessionPool`; a transport also has `"mixed"`, for a call with another
    request's parameters."""
    start_seconds: tuple[float, ...]
    """Durations of the last starts, at most a hundred, in seconds."""
    memory_mb: float
    """Memory of idle and leased processes as last measured, in megabytes; 0 where it cannot be measured."""

    @property
    def is_at_rest(self) -> bool:
        """True if no process is being started, used or reset, and no lease waits."""
        return not (self.busy or self.resetting or self.starting or self.waiting)

    @property
    def summary(self) -> str:
        """Current figures in a line."""
        names = ("idle", "busy", "resetting", "starting", "waiting", "size")
        return " ".join(f"{name}={getattr(self, name)}" for name in names)

    @property
    def running(self) -> int:
        """Processes that are ready: idle, busy or resetting."""
        return self.idle + self.busy + self.resetting


class Figures:
    """Counts of a pool's past work, as in `PoolStats`. Written on the background loop, read from any thread."""

    def __init__(self) -> None:
        self.leases = self.reuses = self.waits = self.queue_timeouts = 0
        self.starts = self.failed_starts = self.resets = 0
        self.recycled = Counter[str]()
        self.queue_seconds, self.start_seconds = (deque[float](maxlen=_MAX_RECORDS) for _ in range(2))

    def with_present(self, **present: Any) -> PoolStats:
        """Return the counts with the present figures."""
        values: dict[str, Any] = {**vars(self), "recycled": dict(self.recycled), **present}
        values |= {name: tuple(values[name].copy()) for name in ("queue_seconds", "start_seconds")}
        return PoolStats(**values)
