"""The processes of a pool: started, leased, reset, monitored and ended, within their limits.

Calls act at once and without awaiting; slow work runs in tasks, at the end of which `on_change` is called. Waiting
leases are unknown here.
"""

import asyncio
import contextvars
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from ..process import connection
from ..process.memory import Memory, memory_of
from .launch import Launch

__all__ = ["PoolLimits", "PoolMember", "ProcessSet", "ResetBy"]

ResetBy: TypeAlias = Literal["rewind", "clear", "fresh"]
"""Method of a reset to an empty conversation."""


class PoolMember(Protocol):
    """A process from the pool's point of view; `Worker` is one."""

    launch: Launch
    memory: Memory
    uses: int
    state: Literal["idle", "busy", "resetting"]
    since: float

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        ...

    @property
    def is_alive(self) -> bool:
        """True if it can take a prompt."""
        ...

    @property
    def is_untouched(self) -> bool:
        """True if the lease left nothing to reset."""
        ...

    @property
    def is_of_another_day(self) -> bool:
        """True if the date has changed since its start."""
        ...

    def matches(self, launch: Launch, /) -> bool:
        """Return true if a lease needs no change of settings."""
        ...

    def enter(self, state: Literal["idle", "busy", "resetting"], /) -> None:
        """Change the state."""
        ...

    def take_back(self) -> None:
        """End the lease."""
        ...

    def unfit(self, by: ResetBy, /) -> str | None:
        """Return the reason why it cannot be reset, if there is one."""
        ...

    async def reset(self, by: ResetBy, /) -> None:
        """Empty the conversation."""
        ...

    async def close(self) -> None:
        """End the process."""
        ...


W = TypeVar("W", bound=PoolMember)

logger = logging.getLogger(__name__)

# Interval of checks for dead, grown and long idle processes.
_LOOK_SECONDS = 1.0

# A reset takes milliseconds; where it ends a turn, up to the close timeout; where the process hangs, up to the control
# timeout. After this, in seconds, the process is abandoned.
_RESET_SECONDS = 15.0
# A waiting lease has another one started rather than wait for a reset that takes longer than a start.
_RESET_SOON_SECONDS = 0.5

# Assumed memory of a process, in megabytes, while there is none to measure.
_FIRST_GUESS_MB = 120.0

_STARTS_REMEMBERED = 100


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Resource limits of a pool. See `SessionPool`."""

    size: int
    prewarm: int
    start_limit: int
    max_uses: int
    max_rss_mb: float
    max_total_mb: float | None
    idle_seconds: float
    reset: ResetBy

    def __post_init__(self) -> None:
        for name in ("size", "start_limit", "max_uses", "max_rss_mb", "max_total_mb", "idle_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} is {value}: it must be greater than 0")
        if not 0 <= self.prewarm <= self.size:
            raise ValueError(f"prewarm is {self.prewarm}: it must lie between 0 and the size, {self.size}")
        if self.reset not in ("rewind", "clear", "fresh"):
            raise ValueError(f"reset is {self.reset!r}: it must be 'rewind', 'clear' or 'fresh'")


class ProcessSet(Generic[W]):
    """At most `limits.size` processes. Lives on the background loop.

    Args:
        limits: Limits of number, size and time.
        keep: Number of idle processes with this key that are not ended for being idle.
        on_change: Called when a process becomes free, has ended, or has failed to start.
        on_failure: Called with the key and the error when a process could not be started.
        start: Starts a process.
    """

    def __init__(
        self,
        limits: PoolLimits,
        keep: Callable[[Hashable], int],
        on_change: Callable[[], None],
        on_failure: Callable[[Hashable, Exception], None],
        start: Callable[[Launch], Awaitable[W]],
    ) -> None:
        self._limits = limits
        self._keep = keep
        self._on_change = on_change
        self._on_failure = on_failure
        self._start_worker = start
        self.workers: set[W] = set()
        """Processes that are ready. Other threads count them, so a change of state is one step."""
        self.starting: dict[asyncio.Task[None], Hashable] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking: asyncio.TimerHandle | None = None
        self._is_closed = False
        self.starts = 0
        self.failed_starts = 0
        self.resets = 0
        self.recycled: Counter[str] = Counter()
        self.start_seconds: deque[float] = deque(maxlen=_STARTS_REMEMBERED)

    @property
    def idle(self) -> list[W]:
        """Clean processes, in order of their last use, the longest unused first."""
        return sorted((worker for worker in self.workers if worker.state == "idle"), key=lambda worker: worker.since)

    def count(self, key: Hashable) -> int:
        """Return the number of ready processes with this key."""
        return sum(worker.launch.key == key for worker in self.workers)

    def count_starting(self, key: Hashable) -> int:
        """Return the number of starting processes with this key."""
        return sum(other == key for other in self.starting.values())

    def resetting_soon(self) -> Counter[Hashable]:
        """Return the number of processes per key whose reset will soon end."""
        since = time.monotonic() - _RESET_SOON_SECONDS
        resetting = [worker for worker in self.workers if worker.state == "resetting" and worker.since > since]
        return Counter(worker.launch.key for worker in resetting)

    def coming(self, key: Hashable) -> int:
        """Return the number of processes with this key that will soon be idle."""
        return self.count_starting(key) + self.resetting_soon()[key]

    def busy_seconds(self) -> list[float]:
        """Return the seconds since each process that is not clean was leased or its reset began."""
        now = time.monotonic()
        return [now - worker.since for worker in self.workers if worker.state != "idle"]

    def idle_with(self, launch: Launch | None) -> list[W]:
        """Return the clean processes with this key, in order of their last use; none for None."""
        return [] if launch is None else [worker for worker in self.idle if worker.launch.key == launch.key]

    def take(self, fitting: Sequence[W], launch: Launch) -> W:
        """Take the clean process that needs no change for `launch`; of several, the last used."""
        worker = ([worker for worker in fitting if worker.matches(launch)] or fitting)[-1]
        worker.launch = launch
        worker.enter("busy")
        return worker

    def start(self, launch: Launch, *, may_evict: bool) -> None:
        """Begin to start a process, in place of idle ones if necessary, if that is allowed now."""
        if len(self.starting) < self._limits.start_limit and self._make_room(may_evict=may_evict):
            self.starting[self._go_on_with(self._start(launch))] = launch.key

    def give_back(self, worker: W) -> None:
        """Take a process back, which is then reset and idle, or replaced."""
        worker.take_back()
        reason = worker.unfit(self._limits.reset)
        if reason is None and worker.uses >= self._limits.max_uses:
            reason = "uses"
        if reason is not None:
            self.end(worker, reason)
        elif worker.is_untouched:
            self._settle(worker)
        else:
            worker.enter("resetting")
            self._go_on_with(self._reset(worker))
        self._on_change()

    def end(self, worker: W, reason: str) -> None:
        """End a process, and count it under `reason`."""
        self.workers.discard(worker)
        if not self._is_closed:
            self.recycled[reason] += 1
        self._go_on_with(worker.close())

    def end_unfit(self) -> None:
        """End the idle processes that no lease can get any more."""
        for worker in self.idle:
            if not worker.is_alive:
                self.end(worker, "dead")
            elif worker.is_of_another_day:
                self.end(worker, "date")

    async def aclose(self) -> None:
        """End all of them. When it returns, none of them is left."""
        self._is_closed = True
        if self._looking is not None:
            self._looking.cancel()
        for task in self.starting:
            task.cancel()
        for worker in self.workers:
            self._go_on_with(worker.close())
        self.workers.clear()
        while self._tasks:
            await asyncio.wait(self._tasks)
        # Processes whose start was cancelled end by themselves.
        await connection.closing_ones_closed()

    def memory_mb(self) -> float:
        """Return the memory of all, as last measured. Pages of the program itself are counted once."""
        memories = [worker.memory for worker in self.workers.copy()]
        return sum(memory.own for memory in memories) + max((memory.shared for memory in memories), default=0)

    async def _start(self, launch: Launch) -> None:
        begun = time.monotonic()
        failure: Exception | None = None
        try:
            worker = await self._start_worker(launch)
        except Exception as error:
            failure = error
            self.failed_starts += 1
        else:
            self.starts += 1
            self.start_seconds.append(time.monotonic() - begun)
            self._has_started(asyncio.current_task())
            self._settle(worker)
            self._note(memory_of(_pids([worker])))
        self._has_started(asyncio.current_task())
        if failure is not None:
            self._on_failure(launch.key, failure)
        self._on_change()

    async def _reset(self, worker: W) -> None:
        reason = None
        try:
            async with asyncio.timeout(_RESET_SECONDS):
                await worker.reset(self._limits.reset)
            self.resets += 1
            self._note(memory_of(_pids([worker])))
        except Exception as error:
            logger.info("A Claude Code process is replaced, since it was not brought back: %s", error)
            reason = "dead" if worker.unfit(self._limits.reset) == "dead" else "reset"
        if reason is None and worker.memory.resident > self._limits.max_rss_mb:
            reason = "memory"
        if reason is None:
            self._settle(worker)
        else:
            self.end(worker, reason)
        self._on_change()

    def _settle(self, worker: W) -> None:
        if self._is_closed:
            self._go_on_with(worker.close())
            return
        worker.enter("idle")
        self.workers.add(worker)
        self._look_later()

    def _make_room(self, *, may_evict: bool) -> bool:
        idle = self.idle if may_evict else []
        for count in range(len(idle) + 1):
            victims = idle[:count]
            if self._fits(victims):
                for victim in victims:
                    self.end(victim, "evicted")
                return True
        return False

    def _fits(self, gone: Iterable[W]) -> bool:
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

    def _look_later(self) -> None:
        if self._looking is None and not self._is_closed:
            self._looking = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look_soon)

    def _look_soon(self) -> None:
        self._go_on_with(self._look())

    async def _look(self) -> None:
        self._looking = None
        self._note(memory_of(_pids(self.workers)))
        self._end_expired()
        if self.workers:
            self._look_later()
        self._on_change()

    def _end_expired(self) -> None:
        """End the longest unused ones that have been idle for too long, except the spare ones."""
        before = time.monotonic() - self._limits.idle_seconds
        left = Counter(worker.launch.key for worker in self.idle)
        for worker in self.idle:
            key = worker.launch.key
            if worker.since < before and left[key] > self._keep(key):
                left[key] -= 1
                self.end(worker, "idle")

    def _note(self, memories: Mapping[int, Memory]) -> None:
        for worker in self.workers:
            if (memory := memories.get(worker.pid or 0)) is not None:
                worker.memory = memory

    def _go_on_with(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # Not in the context of the caller: a process serves many callers, and outlives them.
        task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    def _has_started(self, task: asyncio.Task[Any] | None) -> None:
        if task in self.starting:
            del self.starting[task]

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._has_started(task)  # if it was cancelled before its first step
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("Looking after a Claude Code process failed", exc_info=error)


def _pids(workers: Iterable[PoolMember]) -> list[int]:
    return [pid for worker in workers if (pid := worker.pid) is not None]
