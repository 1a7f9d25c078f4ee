"""The processes of a pool, and its choice among them. Pure: it starts and ends none, and decides without awaiting."""

import asyncio
import time
from collections import Counter
from collections.abc import Hashable, Iterable

from ..process.memory import memory_of
from .launch import Launch
from .limits import PoolLimits
from .worker import Worker

__all__ = ["Processes"]

# A waiting lease has another one started rather than wait for a reset that takes longer than a start.
_RESET_SOON_SECONDS = 0.5

# Assumed memory of a process, in megabytes, while there is none to measure.
_FIRST_GUESS_MB = 120.0


class Processes:
    """The ready and the starting processes of one pool."""

    def __init__(self, limits: PoolLimits) -> None:
        self._limits = limits
        self.workers: set[Worker] = set()
        """Processes that are ready. Other threads count them, so a change of state is one step."""
        self.starting: dict[asyncio.Task[None], Hashable] = {}
        """The key of each process that is not ready yet, by the task that starts it."""

    @property
    def idle(self) -> list[Worker]:
        """Clean processes, in order of their last use, the longest unused first."""
        return sorted((worker for worker in self.workers if worker.state == "idle"), key=lambda worker: worker.since)

    def count(self, key: Hashable) -> int:
        """Return the number of ready processes with this key."""
        return sum(worker.launch.key == key for worker in self.workers)

    def count_idle(self, key: Hashable) -> int:
        """Return the number of clean processes with this key."""
        return sum(worker.launch.key == key for worker in self.idle)

    def starting_by_key(self) -> Counter[Hashable]:
        """Return the number of starting processes per key."""
        return Counter(self.starting.values())

    def coming(self) -> Counter[Hashable]:
        """Return the number of processes per key that are starting, or whose reset will soon end."""
        since = time.monotonic() - _RESET_SOON_SECONDS
        resetting = [worker for worker in self.workers if worker.state == "resetting" and worker.since > since]
        return self.starting_by_key() + Counter(worker.launch.key for worker in resetting)

    def busy_seconds(self) -> list[float]:
        """Return the seconds since each process that is not clean was leased or its reset began."""
        now = time.monotonic()
        return [now - worker.since for worker in self.workers if worker.state != "idle"]

    def best_for(self, launch: Launch) -> Worker | None:
        """Return the clean process that serves `launch` with the fewest changes; of several, the last used."""
        fitting = [worker for worker in self.idle if worker.fits(launch)]
        return max(
            fitting, key=lambda worker: (worker.matches(launch), worker.is_like(launch), worker.since), default=None
        )

    def room(self, *, may_evict: bool) -> list[Worker] | None:
        """Return the idle processes that must end so that another may start; None if it may not."""
        if len(self.starting) >= self._limits.start_limit:
            return None
        idle = self.idle if may_evict else []
        return next((idle[:count] for count in range(len(idle) + 1) if self._fits(idle[:count])), None)

    def unfit(self) -> list[tuple[Worker, str]]:
        """Return the idle processes that no lease can get any more, and why."""
        dead = [(worker, "dead") for worker in self.idle if not worker.is_alive]
        return dead + [(worker, "date") for worker in self.idle if worker.is_alive and worker.is_of_another_day]

    def expired(self, kept: Counter[Hashable]) -> list[Worker]:
        """Return the processes that have been idle for too long, except so many of a key as `kept` says."""
        before, expired = time.monotonic() - self._limits.idle_seconds, list[Worker]()
        rest = Counter(worker.launch.key for worker in self.idle)
        for worker in self.idle:
            if worker.since < before and rest[worker.launch.key] > kept[worker.launch.key]:
                rest[worker.launch.key] -= 1
                expired.append(worker)
        return expired

    def memory_mb(self) -> float:
        """Return the memory of all, as last measured. Pages of the program itself are counted once."""
        memories = [worker.memory for worker in self.workers.copy()]
        return sum(memory.own for memory in memories) + max((memory.shared for memory in memories), default=0)

    def measure(self, workers: Iterable[Worker]) -> None:
        """Measure the memory of processes."""
        by_pid = {pid: worker for worker in workers if (pid := worker.pid) is not None}
        for pid, memory in memory_of(by_pid).items():
            by_pid[pid].memory = memory

    def _fits(self, gone: list[Worker]) -> bool:
        """Return true if there is room for one more when those have ended."""
        rest = self.workers - {*gone}
        count = len(rest) + len(self.starting)
        if count >= self._limits.size:
            return False
        if self._limits.max_total_mb is None or count == 0:
            return True
        own = [worker.memory.own for worker in self.workers]
        guess = sum(own) / len(own) if own else _FIRST_GUESS_MB
        shared = max((worker.memory.shared for worker in self.workers), default=0)
        to_come = (len(self.starting) + 1) * guess
        return sum(worker.memory.own for worker in rest) + to_come + shared <= self._limits.max_total_mb
