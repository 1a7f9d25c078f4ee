"""The pool: which worker answers a request, and how many processes there are.

It decides without awaiting, so what it decides on cannot change meanwhile; starting and closing come after. A process
that ran for somebody else is not the enemy: any worker can be brought to hold any conversation of its launch key, and
that takes milliseconds where a start takes hundreds. So a new process is started only when none of the right kind is
free. One that holds a tool call is taken from its conversation after all others, because the results are probably on
their way; not at all if to write that conversation again would take as long as a start.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import Enum, StrEnum, auto
from typing import cast

from cc_types import CLIConnectionError

from .request import LaunchKey, MessagesRequest
from .worker import Worker

__all__ = ["OpenWorker", "Route", "WorkerPool"]

OpenWorker = Callable[[LaunchKey], Awaitable[Worker]]

logger = logging.getLogger(__name__)

# Starting is bound by the processor: more at once make the first one later and the last one no sooner. Who has to wait
# for a start takes a process that comes free meanwhile.
_STARTS_AT_ONCE = 2
# A message takes about two milliseconds to write, a process some 250 to start.
_CHEAP_TO_REWRITE = 100


class Route(StrEnum):
    """How a request came to its process."""

    RESUME = "resume"
    """The process holds the tool calls that the request answers."""
    EXTEND = "extend"
    """The process holds the conversation before the request's last message."""
    REBUILD = "rebuild"
    """A process that ran already takes over the conversation."""
    START = "start"
    """A new process takes it."""


class _Instead(Enum):
    """What to do when no idle worker is to be taken."""

    START = auto()
    WAIT = auto()


class WorkerPool:
    """At most `size` processes, used by one request each at a time. Lives on one event loop.

    Args:
        open_worker: Starts a process.
        size: How many processes there may be.
        idle_seconds: After how long without a request a process is ended.
    """

    def __init__(self, open_worker: OpenWorker, *, size: int, idle_seconds: float) -> None:
        self._open_worker = open_worker
        self._size = size
        self._idle_seconds = idle_seconds
        # In order of their last use, the longest unused first; each with the timer that ends it.
        self._idle: dict[Worker, asyncio.TimerHandle] = {}
        self._busy: set[Worker] = set()
        self._settling: set[Worker] = set()
        self._starting: set[asyncio.Task[object]] = set()
        self._waiting: list[asyncio.Future[None]] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._closers = 0
        self.routes: Counter[Route] = Counter()
        self.start_seconds: list[float] = []

    async def acquire(self, request: MessagesRequest) -> Worker:
        """Return a worker for `request`, for `release()` or `discard()`. Waits while all are in use.

        Raises:
            ClaudeCodeError: A process could not be started, or the pool is being closed.
        """
        has_waited = False
        while True:
            self._check_open()
            self._drop_dead()
            match self._decide(request, may_wait=not has_waited):
                case Worker() as worker:
                    return self._take(worker, request)
                case _Instead.START:
                    return await self._start(request.launch)
                case _Instead.WAIT:
                    await self._change()
                    has_waited = True

    def settling(self, worker: Worker) -> None:
        """Say that a worker has answered and will be back in a moment."""
        self._settling.add(worker)
        self._notify()

    def release(self, worker: Worker) -> None:
        """Take a worker back."""
        self._busy.discard(worker)
        self._settling.discard(worker)
        loop = asyncio.get_running_loop()
        self._idle[worker] = loop.call_later(self._idle_seconds, self._drop, worker)
        self._drop_dead()
        self._notify()

    def discard(self, worker: Worker) -> None:
        """Take a worker back that is of no use any more, and end it."""
        self._busy.discard(worker)
        self._settling.discard(worker)
        self._close_soon(worker)
        self._notify()

    async def aclose(self) -> None:
        """End all processes, those that start or are in use too; a later request starts new ones.

        Requests that wait or are being answered fail. When it returns, nothing of them is left.
        """
        self._closers += 1
        try:
            for task in self._starting:
                task.cancel()
            for worker in self._busy:
                self._close_soon(worker)
            self._notify()
            while self._idle or self._busy or self._starting or self._closing:
                for worker in [*self._idle]:
                    self._drop(worker)
                await self._change()
        finally:
            self._closers -= 1

    @property
    def pids(self) -> list[int]:
        """The processes that run."""
        return [pid for worker in (*self._idle, *self._busy) if (pid := worker.pid) is not None]

    def __repr__(self) -> str:
        counts = f"idle={len(self._idle)} busy={len(self._busy)} starting={len(self._starting)}"
        return f"<WorkerPool {counts} size={self._size}>"

    def _decide(self, request: MessagesRequest, *, may_wait: bool) -> "Worker | _Instead":
        alike = [worker for worker in self._idle if worker.launch == request.launch]
        coming = [worker for worker in self._settling if worker.launch == request.launch]
        if fitting := [worker for worker in alike if worker.held and worker.fits(request)]:
            return max(fitting, key=lambda worker: len(worker.held))
        if any(worker.fits(request) for worker in coming):
            return _Instead.WAIT
        reuse = {worker: kept for worker in alike if (kept := worker.reuse(request)) is not None}
        if free := [worker for worker in reuse if not worker.awaits_tools or len(worker.held) <= _CHEAP_TO_REWRITE]:
            # The one that has most of the conversation already; of equals, the longest unused.
            return max(free, key=lambda worker: (not worker.awaits_tools, reuse[worker]))
        if (coming and may_wait) or len(self._starting) >= _STARTS_AT_ONCE:
            return _Instead.WAIT
        if not self._is_full:
            return _Instead.START
        if (victim := min(self._idle, key=lambda worker: worker.awaits_tools, default=None)) is None:
            return _Instead.WAIT
        if victim in reuse:
            return victim
        self._drop(victim)
        return _Instead.START

    def _take(self, worker: Worker, request: MessagesRequest) -> Worker:
        self._idle.pop(worker).cancel()
        self._busy.add(worker)
        if not worker.held or not worker.fits(request):
            route = Route.REBUILD
        else:
            route = Route.RESUME if worker.awaits_tools else Route.EXTEND
        self.routes[route] += 1
        return worker

    async def _start(self, launch: LaunchKey) -> Worker:
        task = cast("asyncio.Task[object]", asyncio.current_task())
        begun = time.monotonic()
        self._starting.add(task)
        try:
            worker = await self._open_worker(launch)
        except asyncio.CancelledError:
            self._check_open()
            raise
        finally:
            self._starting.discard(task)
            self._notify()
        self.start_seconds.append(time.monotonic() - begun)
        self.routes[Route.START] += 1
        self._busy.add(worker)
        return worker

    def _check_open(self) -> None:
        if self._closers:
            raise CLIConnectionError(
                reason="The processes were closed while a request was being answered",
                advice="Send it again if its answer is still wanted.",
            )

    @property
    def _is_full(self) -> bool:
        return len(self._idle) + len(self._busy) + len(self._starting) >= self._size

    def _drop_dead(self) -> None:
        for worker in [worker for worker in self._idle if not worker.is_alive]:
            self._drop(worker)

    def _drop(self, worker: Worker) -> None:
        self._idle.pop(worker).cancel()
        self._close_soon(worker)

    def _close_soon(self, worker: Worker) -> None:
        # Its end takes tens of milliseconds, which nobody has to wait for but `aclose()`.
        task = asyncio.ensure_future(worker.close())
        self._closing.add(task)
        task.add_done_callback(self._on_closed)

    def _on_closed(self, task: asyncio.Task[None]) -> None:
        self._closing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("Ending a Claude Code process failed", exc_info=error)
        self._notify()

    async def _change(self) -> None:
        """Wait until a worker comes back, goes, or is about to come back. Each of them ends by its own timeouts."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        finally:
            self._waiting.remove(waiter)

    def _notify(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
