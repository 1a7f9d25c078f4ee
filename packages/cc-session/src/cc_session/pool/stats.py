"""What a pool did and does, as figures."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["PoolStats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStats:
    """Figures of a `SessionPool`: first those of the moment, then those since it was made."""

    size: int
    """How many processes there may be."""
    idle: int
    """Processes that are clean and wait for a lease."""
    busy: int
    """Processes that are leased."""
    resetting: int
    """Processes on their way back to an empty conversation."""
    starting: int
    """Processes that are not ready yet."""
    waiting: int
    """Leases that wait for a process."""
    leases: int
    """Leases that got a session."""
    reuses: int
    """Those of them that got a process which had served another lease before."""
    waits: int
    """Those that had to wait for it: for a start, or for another lease to end."""
    waiting_seconds: float
    """How long the lease has waited that waits longest; 0 if none does."""
    queue_seconds: tuple[float, ...]
    """How long the last leases of `waits` waited, at most a hundred of them, in seconds."""
    queue_timeouts: int
    """Leases that got no session within `Timeouts.queue`."""
    starts: int
    """Processes that were started."""
    failed_starts: int
    """Processes that could not be started."""
    resets: int
    """How often a process was brought back to an empty conversation."""
    recycled: Mapping[str, int]
    """Why processes were ended, and how many: see `SessionPool`."""
    start_seconds: tuple[float, ...]
    """How long the last starts took, at most a hundred of them, in seconds."""
    memory_mb: float
    """What the idle and leased processes took when it was last measured, in megabytes; 0 where it cannot be."""

    @property
    def is_at_rest(self) -> bool:
        """Whether no process is being started, used or brought back, and no lease waits."""
        return not (self.busy or self.resetting or self.starting or self.waiting)

    @property
    def summary(self) -> str:
        """The figures of the moment, in a line."""
        names = ("idle", "busy", "resetting", "starting", "waiting", "size")
        return " ".join(f"{name}={getattr(self, name)}" for name in names)

    @property
    def running(self) -> int:
        """Processes that are ready: idle, busy or resetting."""
        return self.idle + self.busy + self.resetting

    @property
    def median_start_seconds(self) -> float | None:
        """The median of `start_seconds`, or None before the first start."""
        return statistics.median(self.start_seconds) if self.start_seconds else None
