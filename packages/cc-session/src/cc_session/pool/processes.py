"""A pool's processes: the choice among them, for a lease, for eviction, and after the idle timeout; and missing ones.

Pure: nothing here starts or ends a process, or awaits.
"""

import asyncio
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from heapq import heappush
from statistics import fmean

from ..limits import PoolLimits
from ..process.cli_process import memory_of
from .launch import Launch
from .worker import Worker

# Assumed memory of a process, in megabytes, while there is none to measure.
_FIRST_GUESS_MB = 120.0


@dataclass(frozen=True, slots=True, eq=False)
class WarmTarget:
    """A call to `warm()`: the wanted number of processes, leased ones included."""

    launch: Launch
    count: int
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Set when there are so many, or a start has failed."""


class Processes:
    """Ready and starting processes of a pool, and missing ones: for calls to `warm()`, and for `prewarm`.

    Those that `prewarm` keeps are for `launch()`, which the login may change.
    """

    def __init__(self, limits: PoolLimits, launch: Callable[[], Launch]) -> None:
        self._limits, self._launch = limits, launch
        self.workers: set[Worker] = set()
        """Ready processes. Other threads count them, so a change of state is a single step."""
        self.starting: dict[asyncio.Task[None], Hashable] = {}
        """Key of each starting process, by the task that starts it."""
        self.targets: list[WarmTarget] = []
        self.may_prewarm = False
        """True from the first lease on; false after a failed start, until the next lease."""

    @property
    def idle(self) -> list[Worker]:
        """Clean processes, the longest unused first."""
        return sorted((worker for worker in self.workers if worker.state == "idle"), key=lambda worker: worker.since)

    def waits(self, lease_seconds: float, start_seconds: float) -> dict[Hashable, list[float]]:
        """Return heaps by key: for each process that starts or is in use, the seconds until it is probably clean."""
        waits, current_time = defaultdict[Hashable, list[float]](list), time.monotonic()
        for key in self.starting.values():
            heappush(waits[key], start_seconds)
        for worker in self.workers:
            elapsed = current_time - worker.since
            # A lease may take as long again as so far; a reset takes milliseconds, or hangs.
            if worker.state != "idle":
                rest = lease_seconds - elapsed if worker.state == "busy" else 0.0
                heappush(waits[worker.key], max(rest, elapsed))
        return waits

    def busy_seconds(self) -> list[float]:
        """Return the seconds since the lease or reset of each process that is not clean."""
        return [time.monotonic() - worker.since for worker in self.workers if worker.state != "idle"]

    def best_for(self, launch: Launch, *, is_awaited: bool) -> Worker | None:
        """Return the clean process that serves `launch` with the fewest changes; of several, the last used."""
        idle = self.idle
        if len(self.workers) - len(idle) >= self._limits.size and not is_awaited:
            return None
        fitting = (worker for worker in idle if worker.fits(launch))
        return max(fitting, key=lambda worker: worker.preference(launch), default=None)

    def room(self, *, may_evict: bool, is_awaited: bool) -> list[Worker] | None:
        """Return the idle processes that must end so that another may start; None if it may not.

        For a lease for which a process waits, those that wait do not count: none of them might ever be free.
        """
        if len(self.starting) >= min(self._limits.start_limit, os.cpu_count() or 1):
            return None
        candidates = self.idle if may_evict else []
        busy = [worker for worker in self.workers if worker.state == "busy"] if is_awaited else []
        waiting = sum(worker.session.is_waiting for worker in busy)
        victims = (candidates[:count] for count in range(len(candidates) + 1))
        return next((some for some in victims if self._has_room_without(some, waiting)), None)

    def surplus(self) -> list[Worker]:
        """Return the idle processes beyond the pool size."""
        return self.idle[: max(0, len(self.workers) - self._limits.size)]

    def unfit(self) -> list[tuple[Worker, str]]:
        """Return the idle processes that can serve no lease any more, each with the reason."""
        reasons = ((worker, worker.adapter.unfit_while_idle(worker.since)) for worker in self.idle)
        return [(worker, reason) for worker, reason in reasons if reason is not None]

    def past_idle_timeout(self) -> list[Worker]:
        """Return the processes that were idle for `idle_seconds`, except those that `warm()` or `prewarm` keeps."""
        since, expired = time.monotonic() - self._limits.idle_seconds, list[Worker]()
        count, reserve = Counter(worker.key for worker in self.idle), self._reserve()
        for worker in self.idle:
            if worker.since < since and count[worker.key] > reserve[worker.key]:
                count[worker.key] -= 1
                expired.append(worker)
        return expired

    def memory_mb(self, victims: Iterable[Worker] = ()) -> float:
        """Return the total memory without `victims`, as last measured. Shared pages count once."""
        memories = [worker.memory for worker in self.workers.difference(victims)]
        return sum(memory.own for memory in memories) + max((memory.shared for memory in memories), default=0)

    def measure(self, workers: Iterable[Worker]) -> None:
        """Measure the memory of processes."""
        by_pid = {pid: worker for worker in workers if (pid := worker.pid) is not None}
        for pid, memory in memory_of(by_pid).items():
            by_pid[pid].memory = memory

    def _has_room_without(self, victims: list[Worker], waiting: int) -> bool:
        """Return true if there is room for another process when `victims` have ended, beside `waiting` that wait."""
        count = len(self.workers) - len(victims) + len(self.starting) - waiting
        if count >= self._limits.size:
            return False
        if self._limits.max_total_mb is None or count == 0:
            return True
        guess = fmean([worker.memory.own for worker in self.workers] or [_FIRST_GUESS_MB])
        return self.memory_mb(victims) + (len(self.starting) + 1) * guess <= self._limits.max_total_mb

    def missing_for_targets(self) -> list[Launch]:
        """Return the starts that the first unfinished call to `warm()` needs; finish the calls before it.

        Not for all calls at once: they might take the places from each other for ever.
        """
        for target in self._unfinished():
            key = target.launch.key
            missing_count = target.count - sum(worker.key == key for worker in self.workers)
            if missing_count > 0:
                return [target.launch] * (missing_count - [*self.starting.values()].count(key))
            target.done.set_result(None)
        return []

    def missing_ahead(self) -> list[Launch]:
        """Return the starts that `prewarm` needs."""
        if not self.may_prewarm or not self._limits.prewarm:
            return []
        launch = self._launch()
        keys = [worker.key for worker in self.workers if worker.state != "busy"]
        return [launch] * (self._limits.prewarm - [*keys, *self.starting.values()].count(launch.key))

    def _reserve(self) -> Counter[Hashable]:
        reserve = Counter[Hashable]({self._launch().key: self._limits.prewarm})
        for target in self._unfinished():
            reserve[target.launch.key] = max(reserve[target.launch.key], target.count)
        return reserve

    def fail(self, key: Hashable, error: Exception) -> bool:
        """Report a failed start to a call that waits for such a process; return false if there is none."""
        for target in self._unfinished():
            if target.launch.key == key:
                target.done.set_exception(error)
                return True
        if key == self._launch().key:  # would fail again and again
            self.may_prewarm = False
        return False

    def _unfinished(self) -> list[WarmTarget]:
        return [target for target in self.targets if not target.done.done()]
