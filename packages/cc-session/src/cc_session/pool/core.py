"""Pool logic on the background loop: processes for leases.

It decides without awaiting, so its data cannot change meanwhile, and again whenever a process becomes free, ends or
fails. Leases are a queue in order of arrival: the first takes the next free process, or its place; later leases get
only processes that it cannot use. Starts, resets and ends run in tasks.
"""

import asyncio
import contextvars
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, cast

from cc_types import ClaudeCodeError, CLIConnectionError, ControlRequestError, ProcessExitedError

from ..errors import McpServerFailedError, QueueTimeoutError
from ..process import connection
from ..session.session import Session
from ..session.turn import Turn
from .launch import Launch
from .leases import Lease
from .limits import PoolLimits
from .processes import Processes
from .stats import Figures, PoolStats
from .worker import Worker

__all__ = ["PoolCore"]

logger = logging.getLogger(__name__)

# Interval of checks for dead, grown, long idle and missing processes.
_LOOK_SECONDS = 1.0

# A reset takes milliseconds; where it ends a turn, up to the close timeout; where the process hangs, up to the control
# timeout. After this, in seconds, the process is abandoned.
_RESET_SECONDS = 15.0


class PoolCore:
    """Leases, and the processes that serve them. Call nothing in here from another loop, except `stats()`.

    Args:
        launch: Returns the start parameters of the processes that `prewarm` keeps; called each time, because the login
            may have changed.
        limits: Limits on processes.
        start: Starts a process.
    """

    def __init__(
        self,
        launch: Callable[[], Launch],
        limits: PoolLimits,
        start: Callable[[Launch], Awaitable[Worker]] = Worker.start,
    ) -> None:
        self._launch, self._limits, self._start_worker = launch, limits, start
        self._processes = Processes(limits)
        self._waiting: list[Lease] = []
        self._warming: list[tuple[Launch, int, asyncio.Future[None]]] = []
        self._is_prewarmed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking: asyncio.TimerHandle | None = None
        self.is_closed = False
        self._figures = Figures()

    async def acquire(self, lease: Lease) -> Worker:
        """Return a clean process. Always `give_back()` the lease, also after an error.

        Raises:
            QueueTimeoutError: None became free within the launch's `timeouts.queue`.
            ClaudeCodeError: A process could not be started, or the pool is closed.
        """
        self._is_prewarmed = True
        lease.asked_at = time.monotonic()
        waits, failures = False, 0
        lease.queue_length = len(self._waiting)
        while True:
            coming = self._ask_for(lease, first=failures > 0)
            waits |= not coming.done()
            worker = await self._queued(coming, lease)
            lease.wait_seconds = time.monotonic() - lease.asked_at
            try:
                await lease.prepare(worker)
                break
            except (ControlRequestError, McpServerFailedError):
                raise  # another process would refuse it as well
            except ClaudeCodeError:
                lease.worker = None
                self._end(worker, "dead")
                failures += 1
                if failures > self._limits.size:  # more than all idle ones that may have died
                    raise
        self._figures.count_lease(time.monotonic() - lease.asked_at if waits else None, is_reuse=worker.uses > 0)
        return worker

    async def lend(self, lease: Lease) -> Session:
        """Acquire a process, and return the facade of its session."""
        return (await self.acquire(lease)).lend()

    async def release(self, lease: Lease) -> None:
        """Call `give_back()` from other threads."""
        self.give_back(lease)

    async def run(self, launch: Launch, ask: Callable[[Session], Awaitable[Turn]], retries: int) -> Turn:
        """Run one turn in its own session; if its process dies before it answers, retry that often in others."""
        while True:
            lease = Lease(launch)
            try:
                return await ask((await self.acquire(lease)).keep())
            except ProcessExitedError:
                if retries <= 0 or lease.worker is None or lease.worker.has_answered:
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
        if lease.coming is not None:
            lease.coming.cancel()
        if lease.worker is not None:
            self._take_back(lease.worker)
        self._decide()
        self._start_prewarmed()

    async def warm(self, launch: Launch, count: int) -> None:
        """Return when there are `count` processes for `launch`, leased ones included."""
        self._check_open()
        self._is_prewarmed = True
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        target = (launch, count, done)
        self._warming.append(target)
        self._decide()
        try:
            await done
        finally:
            self._warming.remove(target)

    async def prewarm(self) -> None:
        """Start the processes that `prewarm` keeps before the first lease needs one."""
        self._is_prewarmed = True
        self._start_prewarmed()

    async def aclose(self) -> None:
        """Fail all waiting leases and end all processes. When it returns, none of them is left."""
        self.is_closed = True
        waiting = [lease.coming for lease in self._waiting]
        self._waiting.clear()
        for future in (*waiting, *(done for _, _, done in self._warming)):
            if future is not None and not future.done():
                future.set_exception(_closed())
        if self._looking is not None:
            self._looking.cancel()
        for task in self._processes.starting:
            task.cancel()
        for worker in self._processes.workers.copy():
            self._end(worker, "closed")
        while self._tasks:
            await asyncio.wait(self._tasks)
        # Processes whose start was cancelled end by themselves.
        await connection.wait_until_closed()

    def pids(self) -> list[int]:
        """Return the running processes. May be called from any thread."""
        return [pid for worker in self._processes.workers.copy() if (pid := worker.pid) is not None]

    def stats(self) -> PoolStats:
        """Return the current figures. May be called from any thread."""
        workers = self._processes.workers.copy()
        states = Counter(worker.state for worker in workers)
        return self._figures.with_present(
            size=self._limits.size,
            idle=states["idle"],
            busy=states["busy"],
            resetting=states["resetting"],
            starting=len(self._processes.starting),
            waiting=len(self._waiting),
            waiting_seconds=max((time.monotonic() - lease.asked_at for lease in self._waiting.copy()), default=0.0),
            memory_mb=self._processes.memory_mb(),
        )

    # Leases.

    def _ask_for(self, lease: Lease, *, first: bool) -> asyncio.Future[Worker]:
        self._check_open()
        if lease.is_over:  # returned before it began
            raise asyncio.CancelledError
        lease.coming = asyncio.get_running_loop().create_future()
        self._waiting.insert(0 if first else len(self._waiting), lease)
        self._decide()
        return lease.coming

    async def _queued(self, coming: asyncio.Future[Worker], lease: Lease) -> Worker:
        """Wait for the process of a lease, also in a repeated wait, within the limit."""
        seconds = lease.launch.timeouts.queue
        try:
            async with asyncio.timeout(None if seconds is None else lease.asked_at + seconds - time.monotonic()):
                return await coming
        except TimeoutError as error:
            if seconds is None or isinstance(error, ClaudeCodeError):
                raise
            self._figures.queue_timeouts += 1
            raise QueueTimeoutError(
                seconds=seconds,
                size=self._limits.size,
                busy_seconds=self._processes.busy_seconds(),
                waiting=len(self._waiting),
            ) from None

    def _decide(self) -> None:
        """Give each waiting lease a clean process, or let it wait for one that is coming, or start one for it."""
        if self.is_closed:
            return
        for worker, reason in self._processes.unfit():
            self._end(worker, reason)
        coming = self._processes.coming()
        for lease in [*self._waiting]:
            if lease.coming is not None and lease.coming.cancelled():
                continue  # its caller was cancelled, and returns it in its next step
            worker, key = self._processes.best_for(lease.launch), lease.launch.key
            if worker is not None:
                self._hand_over(lease, worker)
            elif coming[key] > 0:
                coming[key] -= 1
            else:
                self._start(lease.launch, may_evict=True)
        self._warm_up()

    def _hand_over(self, lease: Lease, worker: Worker) -> None:
        self._waiting.remove(lease)
        lease.worker = worker
        worker.begin(lease.launch)
        if lease.coming is not None:
            lease.coming.set_result(worker)

    def _warm_up(self) -> None:
        for launch, count, done in self._warming:
            if done.done():
                continue
            missing = count - self._processes.count(launch.key)
            if missing > 0:
                for _ in range(missing - self._processes.starting_by_key()[launch.key]):
                    self._start(launch, may_evict=True)
                return  # one after another: they might take the places from each other for ever
            done.set_result(None)

    def _start_prewarmed(self) -> None:
        if not self._is_prewarmed or self._waiting or not self._limits.prewarm or self.is_closed:
            return
        launch = self._launch()
        ready = self._processes.count_idle(launch.key) + self._processes.coming()[launch.key]
        for _ in range(self._limits.prewarm - ready):
            self._start(launch, may_evict=False)

    def _fail(self, key: Hashable, error: Exception) -> None:
        """Report to the first lease that waits for such a process why there is none."""
        if self.is_closed:
            return
        for lease in self._waiting:
            if lease.launch.key == key and lease.coming is not None and not lease.coming.cancelled():
                self._waiting.remove(lease)
                lease.coming.set_exception(error)
                return
        for launch, _, done in self._warming:
            if launch.key == key and not done.done():
                done.set_exception(error)
                return
        if key == self._launch().key:  # tried again with the next lease; here it would fail repeatedly
            self._is_prewarmed = False
        logger.warning("A Claude Code process for later requests could not be started: %s", error)

    # Processes.

    def _start(self, launch: Launch, *, may_evict: bool) -> None:
        """Begin to start a process, in place of idle ones if necessary, if that is allowed now."""
        if (victims := self._processes.room(may_evict=may_evict)) is None:
            return
        for victim in victims:
            self._end(victim, "evicted")
        task = self._go_on_with(self._started(launch))
        self._processes.starting[task] = launch.key
        task.add_done_callback(self._is_started)  # also if it was cancelled before its first step

    async def _started(self, launch: Launch) -> None:
        begun = time.monotonic()
        failure = None
        try:
            worker = await self._start_worker(launch)
        except Exception as error:
            failure = error
            self._figures.failed_starts += 1
        else:
            self._figures.starts += 1
            self._figures.start_seconds.append(time.monotonic() - begun)
            self._processes.measure([worker])
            self._settle(worker)
        self._is_started(cast("asyncio.Task[None]", asyncio.current_task()))
        if failure is not None:
            self._fail(launch.key, failure)
        self._decide()

    def _is_started(self, task: asyncio.Task[None]) -> None:
        self._processes.starting.pop(task, None)

    def _take_back(self, worker: Worker) -> None:
        """Take a process back, which is then reset and idle, or replaced."""
        worker.take_back()
        reason = worker.unfit()
        if reason is None and worker.uses >= self._limits.max_uses:
            reason = "uses"
        if reason is not None:
            self._end(worker, reason)
        elif worker.is_untouched:
            self._settle(worker)
        else:
            worker.enter("resetting")
            self._go_on_with(self._reset(worker))

    async def _reset(self, worker: Worker) -> None:
        reason = None
        try:
            async with asyncio.timeout(_RESET_SECONDS):
                await worker.reset()
            self._figures.resets += 1
            self._processes.measure([worker])
        except (Exception, asyncio.CancelledError) as error:
            logger.info("A Claude Code process is replaced, since its reset failed: %s", type(error).__name__)
            reason = "dead" if worker.unfit() == "dead" else "reset"
        if reason is None and worker.memory.resident > self._limits.max_rss_mb:
            reason = "memory"
        if reason is None:
            self._settle(worker)
        else:
            self._end(worker, reason)
        self._decide()

    def _settle(self, worker: Worker) -> None:
        if self.is_closed:
            self._go_on_with(worker.close())
            return
        worker.enter("idle")
        self._processes.workers.add(worker)
        self._look_later()

    def _end(self, worker: Worker, reason: str) -> None:
        """End a process, and count it under `reason`."""
        self._processes.workers.discard(worker)
        if not self.is_closed:
            self._figures.recycled[reason] += 1
        self._go_on_with(worker.close())

    def _look_later(self) -> None:
        if self._looking is None and not self.is_closed:
            self._looking = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._looking = None
        self._processes.measure(self._processes.workers)
        for worker in self._processes.expired(self._kept()):
            self._end(worker, "idle")
        self._decide()
        self._start_prewarmed()
        if self._processes.workers or self._processes.starting:
            self._look_later()

    def _kept(self) -> Counter[Hashable]:
        """Return the number of idle processes per key that are not ended for being idle."""
        kept = Counter({self._launch().key: self._limits.prewarm})
        for launch, count, done in self._warming:
            if not done.done():
                kept[launch.key] = max(kept[launch.key], count)
        return kept

    def _go_on_with(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        # Not in the context of the caller: a process serves many callers, and outlives them.
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
    return CLIConnectionError(reason="The pool is closed", advice="Make another one.")
