"""Pool logic on the background loop: processes for leases.

It decides without awaiting, so its data cannot change meanwhile, and again whenever a process becomes free, ends or
fails. Leases wait in order of arrival, behind those that a process waits for: the first takes the next free process, or
its place; later leases get only processes that it cannot use. Starts, resets and ends run in tasks.
"""

import asyncio
import contextvars
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from heapq import heappop, heappush
from statistics import fmean
from typing import Any, cast, get_args

from cc_types import ClaudeCodeError, CLIConnectionError, ControlRequestError, ProcessExitedError

from ..background import process_waits, time_limit
from ..errors import McpServerFailedError, QueueTimeoutError
from ..limits import PoolLimits
from ..process.link import wait_until_closed
from ..session.session import Session
from ..session.turn import Turn
from .launch import Launch
from .processes import Processes, WarmTarget
from .reuse import start_worker
from .stats import Figures, PoolStats
from .worker import Worker, WorkerState

logger = logging.getLogger(__name__)

# Interval between checks for dead, large, long idle and missing processes.
_CHECK_SECONDS = 1.0

# A reset takes milliseconds, or up to a close or control timeout. After this time the process is abandoned.
_RESET_SECONDS = 15.0

# A lease waits for a process in use up to so many start times: a start takes a processor from the other processes for
# as long as it takes itself, so it has to save as much again.
_MAX_WAIT_IN_STARTS = 2
# Assumed until the first start was measured.
_START_SECONDS = 0.5


class Lease:
    """A request for a process, until the process is returned."""

    coming: asyncio.Future[Worker]
    """Set while the lease waits."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.is_awaited = process_waits.get()
        """True if a process may wait for this lease, so that it must not wait for that process."""
        self.is_over = False
        self.worker: Worker | None = None
        self.asked_at = 0.0
        """Time when it asked for a process, on the monotonic clock."""
        self.queue_length = 0
        """Number of leases that waited before it at that time."""
        self.wait_seconds = 0.0
        """Time until it got a process, a start included."""

    async def prepare(self, worker: Worker) -> None:
        """Make a process ready. If it fails, the lease gets another process."""
        await worker.adapter.prepare(self.launch)


class PoolCore:
    """Leases, and the processes that serve them. Call nothing in here from another loop, except `stats()`."""

    def __init__(
        self,
        launch: Callable[[], Launch],
        limits: PoolLimits,
        start: Callable[[Launch], Awaitable[Worker]] = start_worker,
    ) -> None:
        self._limits, self._start_worker = limits, start
        self._processes = Processes(limits, launch)
        self._waiting: list[Lease] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_check: asyncio.TimerHandle | None = None
        self.is_closed = False
        self._figures = Figures()
        self._lease_seconds = deque[float](maxlen=8)
        self._expected_wait = 0.0

    async def acquire(self, lease: Lease) -> Worker:
        """Return a clean process. Raise as `SessionPool.lease()`. Also after an error, `give_back()` the lease."""
        self._processes.may_prewarm = True
        lease.asked_at = time.monotonic()
        waits, failures = False, 0
        lease.queue_length = len(self._waiting)
        while True:
            self._enqueue(lease, at_front=failures > 0)
            waits |= not lease.coming.done()
            worker = await self._wait_for(lease)
            lease.wait_seconds = time.monotonic() - lease.asked_at
            worker.session.begin_lease()
            try:
                await lease.prepare(worker)
                break
            except (ControlRequestError, McpServerFailedError):
                raise  # another process would refuse it as well
            except ClaudeCodeError:
                lease.worker = None
                self._end(worker, "dead")
                failures += 1
                if failures > self._limits.size:  # more than all idle processes that may have died
                    raise
        self._figures.leases += 1
        self._figures.reuses += worker.uses > 0
        worker.uses += 1
        if waits:
            self._figures.waits += 1
            self._figures.queue_seconds.append(lease.wait_seconds)
        return worker

    async def lend(self, lease: Lease) -> Session:
        """Acquire a process, and return its session for this lease."""
        return (await self.acquire(lease)).session.lend()

    async def release(self, lease: Lease) -> None:
        """Call `give_back()` from other threads."""
        self.give_back(lease)

    async def run(self, launch: Launch, ask: Callable[[Session], Awaitable[Turn]], retries: int) -> Turn:
        """Run one turn in a new lease; if the process dies before it answers, retry in another, up to `retries`."""
        while True:
            lease = Lease(launch)
            try:
                return await ask((await self.acquire(lease)).session)  # so that calls fail with the process error
            except ProcessExitedError:
                if retries <= 0 or lease.worker is None or lease.worker.session.side_effects.answered:
                    raise
                retries -= 1
            finally:
                self.give_back(lease)

    def give_back(self, lease: Lease) -> None:
        """End a lease in any state. Idempotent."""
        if lease.is_over:
            return
        lease.is_over = True
        if lease in self._waiting:
            self._waiting.remove(lease)
            lease.coming.cancel()
        if lease.worker is not None:
            self._take_back(lease.worker)
        self._decide()
        self._start_ahead()

    async def warm(self, launch: Launch, count: int) -> None:
        """Return when there are `count` processes for `launch`, leased processes included."""
        self._check_open()
        self._processes.may_prewarm = True
        target = WarmTarget(launch, count)
        self._processes.targets.append(target)
        self._decide()
        try:
            await target.done
        finally:
            self._processes.targets.remove(target)

    async def prewarm(self) -> None:
        """Start the processes that `prewarm` keeps, before the first lease needs one."""
        self._processes.may_prewarm = True
        self._start_ahead()

    async def aclose(self) -> None:
        """Fail all waiting leases and end all processes, and return when they have ended."""
        self.is_closed = True
        waiting = [lease.coming for lease in self._waiting]
        self._waiting.clear()
        for future in (*waiting, *(target.done for target in self._processes.targets)):
            if not future.done():
                future.set_exception(_closed())
        if self._next_check is not None:
            self._next_check.cancel()
        for task in self._processes.starting:
            task.cancel()
        for worker in self._processes.workers.copy():
            self._end(worker, "closed")
        while self._tasks:
            await asyncio.wait(self._tasks)
        # Processes whose start was cancelled end by themselves.
        await wait_until_closed()

    def pids(self) -> list[int]:
        """Return the running processes. May be called from any thread."""
        return [pid for worker in self._processes.workers.copy() if (pid := worker.pid) is not None]

    def stats(self) -> PoolStats:
        """Return the current figures. May be called from any thread."""
        states = Counter(worker.state for worker in self._processes.workers.copy())
        return self._figures.with_present(
            size=self._limits.size,
            **{state: states[state] for state in get_args(WorkerState)},
            starting=len(self._processes.starting),
            waiting=len(self._waiting),
            waiting_seconds=max((time.monotonic() - lease.asked_at for lease in self._waiting.copy()), default=0.0),
            expected_wait_seconds=self._expected_wait,
            memory_mb=self._processes.memory_mb(),
        )

    # Leases.

    def _enqueue(self, lease: Lease, *, at_front: bool) -> None:
        self._check_open()
        if lease.is_over:  # returned before it began
            raise asyncio.CancelledError
        lease.coming = asyncio.get_running_loop().create_future()
        self._waiting.insert(0 if at_front else len(self._waiting), lease)
        self._waiting.sort(key=lambda lease: not lease.is_awaited)
        self._decide()

    async def _wait_for(self, lease: Lease) -> Worker:
        """Wait for a lease's process. The limit is on all waits of the lease together."""
        seconds = lease.launch.timeouts.queue
        if seconds is None:
            return await lease.coming

        def timeout() -> QueueTimeoutError:
            self._figures.queue_timeouts += 1
            busy, waiting = self._processes.busy_seconds(), len(self._waiting)
            return QueueTimeoutError(seconds=seconds, size=self._limits.size, busy_seconds=busy, waiting=waiting)

        async with time_limit(lease.asked_at + seconds - time.monotonic(), timeout):
            return await lease.coming

    def _decide(self) -> None:
        """Give each waiting lease a clean process; start another for it if the expected wait is too long."""
        if self.is_closed:
            return
        for worker, reason in self._processes.unfit():
            self._end(worker, reason)
        # The shortest, since a start or another program may have delayed the others.
        lease_seconds = min(self._lease_seconds or [max((0.0, *self._processes.busy_seconds()))])
        start_seconds = fmean(self._figures.start_seconds or [_START_SECONDS])
        waits = self._processes.waits(lease_seconds, start_seconds)
        self._expected_wait = 0.0
        for lease in [*self._waiting]:
            if lease.coming.cancelled():
                continue  # its caller was cancelled, and returns it in the next step
            worker, queue = self._processes.best_for(lease.launch, is_awaited=lease.is_awaited), waits[lease.launch.key]
            is_short = bool(queue) and queue[0] <= _MAX_WAIT_IN_STARTS * start_seconds
            if worker is not None:
                wait = 0.0
                self._hand_over(lease, worker)
            elif not is_short and self._start(lease.launch, may_evict=True, is_awaited=lease.is_awaited):
                wait = start_seconds
            else:
                wait = heappop(queue) if queue else lease_seconds
            heappush(queue, wait + lease_seconds)
            self._expected_wait = max(self._expected_wait, wait)
        for launch in self._processes.missing_for_targets():
            self._start(launch, may_evict=True)
        for worker in self._processes.surplus():
            self._end(worker, "evicted")

    def _hand_over(self, lease: Lease, worker: Worker) -> None:
        self._waiting.remove(lease)
        lease.worker = worker
        worker.enter("busy")
        lease.coming.set_result(worker)

    def _start_ahead(self) -> None:
        if self._waiting or self.is_closed:
            return
        for launch in self._processes.missing_ahead():
            self._start(launch, may_evict=False)

    def _fail(self, launch: Launch, error: Exception) -> None:
        """Report to the first lease that waits for such a process why there is none."""
        if self.is_closed:
            return
        for lease in self._waiting:
            if lease.launch.key == launch.key and not lease.coming.cancelled():
                self._waiting.remove(lease)
                lease.coming.set_exception(error)
                return
        if not self._processes.fail(launch.key, error):
            logger.warning("A Claude Code process for later requests could not be started: %s", error)

    # Processes.

    def _start(self, launch: Launch, *, may_evict: bool, is_awaited: bool = False) -> bool:
        """Begin to start a process, in place of idle ones if necessary; return false if that is not allowed now."""
        if (victims := self._processes.room(may_evict=may_evict, is_awaited=is_awaited)) is None:
            return False
        for victim in victims:
            self._end(victim, "evicted")
        task = self._run_task(self._start_now(launch))
        self._processes.starting[task] = launch.key
        task.add_done_callback(self._is_started)  # also if it was cancelled before the first step
        return True

    async def _start_now(self, launch: Launch) -> None:
        began = time.monotonic()
        try:
            worker = await self._start_worker(launch)
        except Exception as error:
            self._figures.failed_starts += 1
            self._fail(launch, error)
        else:
            self._figures.starts += 1
            self._figures.start_seconds.append(time.monotonic() - began)
            self._processes.measure([worker])
            worker.is_unsure = not launch.is_current
            self._settle(worker)
        self._is_started(cast("asyncio.Task[None]", asyncio.current_task()))
        self._decide()
        for worker in self._processes.idle:
            if worker.is_unsure:
                self._end(worker, "changed")

    def _is_started(self, task: asyncio.Task[None]) -> None:
        self._processes.starting.pop(task, None)

    def _take_back(self, worker: Worker) -> None:
        """Take a process back, which is then reset and idle, or replaced."""
        worker.session.end_lease()
        if worker.uses > 1:  # the first takes longer
            self._lease_seconds.append(time.monotonic() - worker.since)
        is_worn = worker.uses >= self._limits.max_uses
        reason = "changed" if worker.is_unsure else worker.adapter.unfit() or ("uses" if is_worn else None)
        if reason is not None:
            self._end(worker, reason)
        elif worker.adapter.is_untouched:
            self._settle(worker)
        else:
            worker.enter("resetting")
            self._run_task(self._reset(worker))

    async def _reset(self, worker: Worker) -> None:
        reason = None
        try:
            async with asyncio.timeout(_RESET_SECONDS):
                await worker.adapter.reset()
            self._figures.resets += 1
            self._processes.measure([worker])
        except (Exception, asyncio.CancelledError) as error:
            logger.info("A Claude Code process is replaced, since its reset failed: %s", type(error).__name__)
            reason = "dead" if worker.adapter.unfit() == "dead" else "reset"
        if reason is None and worker.memory.own + worker.memory.shared > self._limits.max_rss_mb:
            reason = "memory"
        self._settle(worker) if reason is None else self._end(worker, reason)
        self._decide()

    def _settle(self, worker: Worker) -> None:
        if self.is_closed:
            self._run_task(worker.close())
            return
        worker.enter("idle")
        self._processes.workers.add(worker)
        self._check_later()

    def _end(self, worker: Worker, reason: str) -> None:
        """End a process, and count it under `reason`."""
        self._processes.workers.discard(worker)
        if not self.is_closed:
            self._figures.recycled[reason] += 1
        self._run_task(worker.close())

    def _check_later(self) -> None:
        if self._next_check is None and not self.is_closed:
            seconds = _CHECK_SECONDS / 4 if self._waiting else _CHECK_SECONDS
            self._next_check = asyncio.get_running_loop().call_later(seconds, self._check)

    def _check(self) -> None:
        self._next_check = None
        self._processes.measure(self._processes.workers)
        for worker in self._processes.past_idle_timeout():
            self._end(worker, "idle")
        self._decide()
        self._start_ahead()
        if self._processes.workers or self._processes.starting:
            self._check_later()

    def _run_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # Not in the caller's context: a process serves many callers, and outlives them.
        task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._has_ended)
        return task

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("Looking after a Claude Code process failed", exc_info=error)

    def _check_open(self) -> None:
        if self.is_closed:
            raise _closed()


def _closed() -> CLIConnectionError:
    return CLIConnectionError(reason="The pool is closed", advice="Make another pool.")
