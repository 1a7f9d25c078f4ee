"""Pool logic on the background loop: assign processes to leases.

It decides without awaiting, so its data cannot change meanwhile, and again whenever a process becomes free, ends or
fails. Leases are a queue in order of arrival: the first takes the next free process, or its place; later leases get
only processes that it cannot use.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable
from enum import Enum, auto
from math import inf
from typing import Generic, Protocol, TypeVar

from cc_types import ClaudeCodeError, CLIConnectionError, ControlRequestError, ProcessExitedError

from ..errors import QueueTimeoutError
from ..session.session import Session
from ..session.turn import Turn
from .launch import Launch
from .processes import PoolLimits, PoolMember, ProcessSet
from .stats import PoolStats

__all__ = ["Lease", "PoolCore"]


class LeasableProcess(PoolMember, Protocol):
    """A process from a lease's point of view; `Worker` is one."""

    @property
    def has_answered(self) -> bool:
        """True if an answer has begun in this lease."""
        ...

    async def prepare(self, launch: Launch, /) -> None:
        """Check that it answers, and apply the settings of a lease."""
        ...

    def lend(self) -> Session:
        """Return a session object that is valid for one lease."""
        ...

    def keep(self) -> Session:
        """Return the session itself, for internal use."""
        ...


W = TypeVar("W", bound=LeasableProcess)

logger = logging.getLogger(__name__)

_WAITS_REMEMBERED = 100

# A start takes a whole processor, of which a lease that has just begun has more need. The pool decides again when the
# lease ends, and once a second.
_SPARE_DELAY_SECONDS = 0.25


class Step(Enum):
    """Next step for a waiting lease."""

    TAKE = auto()
    """It gets a clean process with its own launch key."""
    TAKE_SPARE = auto()
    """It gets a clean process that can be adapted."""
    WAIT = auto()
    """It waits for a process that is starting or resetting."""
    START = auto()
    """A process is started for it, in place of idle ones of other keys if necessary, as soon as there is room."""


def next_step(*, has_idle: bool, has_resetting: bool, has_spare: bool, has_starting: bool) -> Step:
    """Decide the next step for the first waiting lease. Pure.

    A reset takes milliseconds, the adaptation of a spare process tens of them, a start hundreds.

    | clean process with its key | one that is resetting | spare process | one that is starting | step |
    | --- | --- | --- | --- | --- |
    | yes | | | | `TAKE` |
    | no | yes | | | `WAIT` |
    | no | no | yes | | `TAKE_SPARE` |
    | no | no | no | yes | `WAIT` |
    | no | no | no | no | `START` |
    """
    if has_idle:
        return Step.TAKE
    if has_resetting:
        return Step.WAIT
    if has_spare:
        return Step.TAKE_SPARE
    return Step.WAIT if has_starting else Step.START


class Lease(Generic[W]):
    """A request for a process, from its creation until the process is returned.

    Args:
        launch: Start parameters of the process.
        prepare: Makes a process ready for this lease; `Worker.prepare()` if None. If the process fails meanwhile, the
            lease gets another one.
    """

    def __init__(self, launch: Launch, prepare: Callable[[W], Awaitable[None]] | None = None) -> None:
        self.launch = launch
        self._prepare = prepare
        self.is_over = False
        self.worker: W | None = None
        self.coming: asyncio.Future[W] | None = None
        """Set while it waits."""
        self.asked_at = 0.0
        """Time of the request for a process, on the monotonic clock."""
        self.queue_length = 0
        """Number of leases that waited before it at its request."""
        self.wait_seconds = 0.0
        """Wait for its process, a start included."""

    async def prepare(self, worker: W) -> None:
        """Make a process ready.

        Raises:
            ClaudeCodeError: The process failed or refused.
        """
        await (worker.prepare(self.launch) if self._prepare is None else self._prepare(worker))


class PoolCore(Generic[W]):
    """Leases, and the processes that serve them. Call nothing in here from another loop, except `stats()`.

    Args:
        spare: Returns the start parameters of spare processes; called each time, because the login may have changed.
        limits: Limits on processes.
        start: Starts a process.
    """

    def __init__(
        self, spare: Callable[[], Launch], limits: PoolLimits, start: Callable[[Launch], Awaitable[W]]
    ) -> None:
        self._spare = spare
        self._limits = limits
        self._processes = ProcessSet(limits, self._spares, self._decide, self._fail, start)
        self._waiting: list[Lease[W]] = []
        self._warming: list[tuple[Launch, int, asyncio.Future[None]]] = []
        self._keeps_spares = False
        self._lent_at = -inf
        self.is_closed = False
        self._leases = 0
        self._reuses = 0
        self._waits = 0
        self._queue_seconds: deque[float] = deque(maxlen=_WAITS_REMEMBERED)
        self._queue_timeouts = 0

    async def acquire(self, lease: Lease[W]) -> W:
        """Return a clean process. Always `give_back()` the lease, also after an error.

        Raises:
            QueueTimeoutError: None became free within the launch's `timeouts.queue`.
            ClaudeCodeError: A process could not be started, or the pool is closed.
        """
        self._keeps_spares = True
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
            except ControlRequestError:
                raise  # another process would refuse it as well
            except ClaudeCodeError:
                lease.worker = None
                self._processes.end(worker, "dead")
                failures += 1
                if failures > self._limits.size:  # more than all idle ones that may have died
                    raise
        self._leases += 1
        if waits:
            self._waits += 1
            self._queue_seconds.append(time.monotonic() - lease.asked_at)
        self._reuses += worker.uses > 0
        return worker

    async def lend(self, lease: Lease[W]) -> Session:
        """Acquire a process, and return the facade of its session."""
        return (await self.acquire(lease)).lend()

    async def release(self, lease: Lease[W]) -> None:
        """Call `give_back()` from other threads."""
        self.give_back(lease)

    async def run(self, launch: Launch, ask: Callable[[Session], Awaitable[Turn]], retries: int) -> Turn:
        """Run one turn in its own session; if its process dies before it answers, retry that often in others."""
        while True:
            lease = Lease[W](launch)
            try:
                return await ask((await self.acquire(lease)).keep())
            except ProcessExitedError:
                if retries <= 0 or lease.worker is None or lease.worker.has_answered:
                    raise
                retries -= 1
            finally:
                self.give_back(lease)

    def give_back(self, lease: Lease[W]) -> None:
        """End a lease in any state. Idempotent."""
        if lease.is_over:
            return
        lease.is_over = True
        if lease in self._waiting:
            self._waiting.remove(lease)
        if lease.coming is not None:
            lease.coming.cancel()
        if lease.worker is not None:
            self._processes.give_back(lease.worker)
        else:
            self._decide()

    async def warm(self, launch: Launch, count: int) -> None:
        """Return when there are `count` processes for `launch`, leased ones included."""
        self._check_open()
        self._keeps_spares = True
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        target = (launch, count, done)
        self._warming.append(target)
        self._decide()
        try:
            await done
        finally:
            self._warming.remove(target)

    async def keep_spares(self) -> None:
        """Start the spare processes before the first lease needs one."""
        self._keeps_spares = True
        self._decide()

    async def aclose(self) -> None:
        """Fail all waiting leases and end all processes. When it returns, none of them is left."""
        self.is_closed = True
        waiting = [lease.coming for lease in self._waiting]
        self._waiting.clear()
        for future in (*waiting, *(done for _, _, done in self._warming)):
            if future is not None and not future.done():
                future.set_exception(_closed())
        await self._processes.aclose()

    def pids(self) -> list[int]:
        """Return the running processes. May be called from any thread."""
        return [pid for worker in self._processes.workers.copy() if (pid := worker.pid) is not None]

    def stats(self) -> PoolStats:
        """Return the current figures. May be called from any thread."""
        processes = self._processes
        states = Counter(worker.state for worker in processes.workers.copy())
        return PoolStats(
            size=self._limits.size,
            idle=states["idle"],
            busy=states["busy"],
            resetting=states["resetting"],
            starting=len(processes.starting),
            waiting=len(self._waiting),
            leases=self._leases,
            reuses=self._reuses,
            waits=self._waits,
            waiting_seconds=max((time.monotonic() - lease.asked_at for lease in self._waiting.copy()), default=0.0),
            queue_seconds=tuple(self._queue_seconds.copy()),
            queue_timeouts=self._queue_timeouts,
            starts=processes.starts,
            failed_starts=processes.failed_starts,
            resets=processes.resets,
            recycled=dict(processes.recycled),
            start_seconds=tuple(processes.start_seconds.copy()),
            memory_mb=processes.memory_mb(),
        )

    def _ask_for(self, lease: Lease[W], *, first: bool) -> asyncio.Future[W]:
        self._check_open()
        if lease.is_over:  # returned before it began
            raise asyncio.CancelledError
        lease.coming = asyncio.get_running_loop().create_future()
        self._waiting.insert(0 if first else len(self._waiting), lease)
        self._decide()
        return lease.coming

    async def _queued(self, coming: asyncio.Future[W], lease: Lease[W]) -> W:
        """Wait for the process of a lease, also in a repeated wait, within the limit."""
        seconds = lease.launch.timeouts.queue
        try:
            async with asyncio.timeout(None if seconds is None else lease.asked_at + seconds - time.monotonic()):
                return await coming
        except TimeoutError as error:
            if seconds is None or isinstance(error, ClaudeCodeError):
                raise
            self._queue_timeouts += 1
            raise QueueTimeoutError(
                seconds=seconds,
                size=self._limits.size,
                busy_seconds=self._processes.busy_seconds(),
                waiting=len(self._waiting),
            ) from None

    def _decide(self) -> None:
        """Assign available processes to waiting leases, and start missing ones."""
        if self.is_closed:
            return
        self._processes.end_unfit()
        resetting, starting = self._processes.resetting_soon(), Counter(self._processes.starting.values())
        for lease in [*self._waiting]:
            if lease.coming is not None and lease.coming.cancelled():
                continue  # its caller was cancelled, and returns it in its next step
            key = lease.launch.key
            idle, spare = self._processes.idle_with(lease.launch), self._processes.idle_with(lease.launch.spare)
            step = next_step(
                has_idle=bool(idle),
                has_resetting=resetting[key] > 0,
                has_spare=bool(spare),
                has_starting=starting[key] > 0,
            )
            match step:
                case Step.TAKE:
                    self._hand_over(lease, self._processes.take(idle, lease.launch))
                case Step.TAKE_SPARE:
                    self._hand_over(lease, self._processes.take(spare, lease.launch))
                case Step.WAIT:
                    (resetting if resetting[key] > 0 else starting)[key] -= 1
                case Step.START:
                    self._processes.start(lease.launch, may_evict=True)
        self._warm_up()
        self._start_spares()

    def _hand_over(self, lease: Lease[W], worker: W) -> None:
        self._waiting.remove(lease)
        self._lent_at = time.monotonic()
        lease.worker = worker
        if lease.coming is not None:
            lease.coming.set_result(worker)

    def _warm_up(self) -> None:
        for launch, count, done in self._warming:
            if done.done():
                continue
            missing = count - self._processes.count(launch.key)
            if missing > 0:
                for _ in range(missing - self._processes.count_starting(launch.key)):
                    self._processes.start(launch, may_evict=True)
                return  # one after another: they might take the places from each other for ever
            done.set_result(None)

    def _start_spares(self) -> None:
        if not self._keeps_spares or self._waiting or not self._limits.prewarm:
            return
        if self._processes.busy_seconds() and time.monotonic() < self._lent_at + _SPARE_DELAY_SECONDS:
            return
        launch = self._spare()
        key = launch.key
        idle = self._processes.idle
        clean = sum(worker.launch.key == key for worker in idle)
        # A process that can be adapted is worth more than the longest unused of several that cannot.
        may_evict = launch.is_spare and len(idle) - clean > 1
        for _ in range(self._limits.prewarm - clean - self._processes.coming(key)):
            self._processes.start(launch, may_evict=may_evict)

    def _spares(self, key: Hashable) -> int:
        wanted = [count for launch, count, done in self._warming if launch.key == key and not done.done()]
        if self._is_spare(key):
            wanted.append(self._limits.prewarm)
        return max(wanted, default=0)

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
        if is_spare := self._is_spare(key):
            self._keeps_spares = False  # it is retried with the next lease; here it would fail repeatedly
        kind = "A spare Claude Code process" if is_spare else "A process that is not needed any more"
        logger.warning("%s could not be started: %s", kind, error)

    def _is_spare(self, key: Hashable) -> bool:
        return self._limits.prewarm > 0 and key == self._spare().key

    def _check_open(self) -> None:
        if self.is_closed:
            raise _closed()


def _closed() -> CLIConnectionError:
    return CLIConnectionError(reason="The pool is closed", advice="Make another one.")
