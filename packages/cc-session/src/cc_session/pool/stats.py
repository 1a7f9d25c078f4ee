"""Figures of a pool's present and past work."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["PoolStats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStats:
    """Figures of a `SessionPool`: first the current ones, then the counts since its creation."""

    size: int
    """Maximum number of processes."""
    idle: int
    """Processes that are clean and wait for a lease."""
    busy: int
    """Processes that are leased."""
    resetting: int
    """Processes that are being reset to an empty conversation."""
    starting: int
    """Processes that are not ready yet."""
    waiting: int
    """Leases that wait for a process."""
    leases: int
    """Leases that got a session."""
    reuses: int
    """Leases of these that got a process which had served another lease before."""
    waits: int
    """Leases of these that waited: for a start, or for another lease to end."""
    waiting_seconds: float
    """Longest wait of a waiting lease so far; 0 if none waits."""
    queue_seconds: tuple[float, ...]
    """Wait times of the last leases of `waits`, at most a hundred, in seconds."""
    queue_timeouts: int
    """Leases that got no session within `Timeouts.queue`."""
    starts: int
    """Processes started."""
    failed_starts: int
    """Processes that could not be started."""
    resets: int
    """Resets of a process to an empty conversation."""
    recycled: Mapping[str, int]
    """Number of ended processes per reason: see `SessionPool`."""
    start_seconds: tuple[float, ...]
    """Durations of the last starts, at most a hundred, in seconds."""
    memory_mb: float
    """Last measured memory of idle and leased processes, in megabytes; 0 where it cannot be measured."""

    @property
    def is_at_rest(self) -> bool:
        """True if no process is being started, used or reset, and no lease waits."""
        return not (self.busy or self.resetting or self.starting or self.waiting)

    @property
    def summary(self) -> str:
        """Return the current figures in a line."""
        names = ("idle", "busy", "resetting", "starting", "waiting", "size")
        return " ".join(f"{name}={getattr(self, name)}" for name in names)

    @property
    def running(self) -> int:
        """Processes that are ready: idle, busy or resetting."""
        return self.idle + self.busy + self.resetting
