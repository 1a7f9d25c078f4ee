"""Rounds of cases under faults, checks for their results, and how each case ended: the category for the verdict."""

import asyncio
import contextlib
import errno
import itertools
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from random import Random
from typing import Any

from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError, ModelOverloadedError, ModelRateLimitError

from .faults import BRIEF_PLACES, CONNECTION, FAULTS, INJECTED, NO_DESCRIPTOR, TOOL, Ground, Round, planned
from .report import Settings, Totals
from .rest import Before, end_orphans, left_over, look, settled, stable
from .verdict import OTHER, RIGHT, Ended, judge
from .work import HEAVY, LIGHT, Case, Kind, ToolFailedError

KINDS = {**LIGHT, **HEAVY}

_ROUND_SECONDS = 15.0
# A short soak has several rounds, too.
_LEAST_ROUNDS = 3
_HEAVY_SHARE = 0.02
# With a new process for each case, memory and time are spent on starting them.
_BRIEF_SHARE = 0.02
_BRIEF_SHARE_IDLE = 0.3
_LONGEST_PAUSE = 1.0
# Each round has separate case numbers, so that it does not depend on the soak's first round.
_NUMBERS_PER_ROUND = 1_000_000
# Seconds between memory samples, at which the API also deletes recorded requests.
_SAMPLE_EVERY = 1.0
# Seconds. A case takes well below a second alone, and some seconds among others and with new processes; after this time
# it hangs.
RUN_SECONDS = 120
# Seconds. A cancelled run ends within milliseconds.
_CANCEL_SECONDS = 20.0
_ERRORS = {
    ModelRateLimitError: "429",
    ModelOverloadedError: "529",
    ModelConnectionError: CONNECTION,
    ToolFailedError: TOOL,
}
# The text after it may be about earlier requests.
_STDERR = "The end of its stderr"


class Soak:
    """A soak: rounds until the time is over or `stop` is set.

    `noise` returns the errors since the last call that no caller received.
    """

    def __init__(
        self, settings: Settings, ground: Ground, stop: asyncio.Event, totals: Totals, noise: Callable[[], list[str]]
    ) -> None:
        self._settings, self._ground, self._stop, self._totals = settings, ground, stop, totals
        self._noise = noise
        self.round: Round | None = None
        """The current round."""

    async def run(self) -> None:
        """Warm up, make rounds until the time is over, and check for leaks."""
        files = look(self._ground.room.path)
        await self._warm_up()
        await self._close()
        before = await stable(self._ground.room.path)
        self._totals.breaks(-1, [f"file {name}, after the warm-up" for name in before.files - files.files])
        self._totals.rest()
        duration = self._settings.minutes * 60
        end = time.monotonic() + duration
        for number in itertools.count(self._settings.first_round):
            seconds = min(_ROUND_SECONDS, duration / _LEAST_ROUNDS, end - time.monotonic())
            if seconds <= 0 or self._stop.is_set():
                break
            self.round = planned(self._settings.seed, number, self._settings.faults, seconds)
            await self._make(self.round, before)
        await self._rest(-1 if self.round is None else self.round.number, before)

    async def _make(self, plan: Round, before: Before) -> None:
        numbers = itertools.count((plan.number + 1) * _NUMBERS_PER_ROUND)
        first = len(self._ground.records)
        async with self._inject(plan):
            ends = await self._work(plan, numbers)
        await self._ground.api.order("drop_faults")
        await self._ground.api.update()
        verdict = judge(ends, self._ground.records, self._ground.api.hits)
        self._totals.count(ends, verdict)
        self._totals.breaks(plan.number, verdict.broken)
        self._totals.done += Counter(record.fault for record in self._ground.records[first:])
        self._totals.rounds += 1
        await self._look_again(plan, numbers, before)

    async def _look_again(self, plan: Round, numbers: Iterator[int], before: Before) -> None:
        """Check that all processes come to rest and that all cases succeed again."""
        places = self._settings.pool + BRIEF_PLACES
        self._totals.breaks(plan.number, await settled(self._ground.providers, places, before))
        if plan.faults and not self._stop.is_set():
            ends = await self._work(Round(plan.number), numbers, iter(LIGHT))
            verdict = judge(ends, [])
            self._totals.count(ends, verdict)
            self._totals.breaks(plan.number, [f"after all faults: {line}" for line in verdict.broken])
        self._ground.records.clear()
        self._ground.api.hits.clear()
        self._totals.breaks(plan.number, [f"the API's script: {error}" for error in self._ground.api.errors])
        self._ground.api.errors.clear()
        self._totals.breaks(plan.number, [f"not reported to a caller: {line}" for line in self._noise()])
        if plan.ends_processes:
            await self._rest(plan.number, before)

    async def _rest(self, number: int, before: Before) -> None:
        """Stop all processes, and check for leaks."""
        await self._close()
        self._totals.orphans += await end_orphans()
        leaks = await left_over(before, self._ground.room.path)
        self._totals.breaks(number, [f"left over: {line}" for line in leaks])
        self._totals.breaks(number, [f"not reported to a caller: {line}" for line in self._noise()])
        self._totals.rest()

    async def _close(self) -> None:
        for provider in self._ground.providers:
            await provider.transport.aclose()

    async def _warm_up(self) -> None:
        """Make a case for each kind, so that permanent resources exist and modules are imported."""
        ends = await self._work(Round(-1), itertools.count(), iter(KINDS))
        self._totals.breaks(-1, [f"warm-up: {line}" for line in judge(ends, []).broken])

    @contextlib.asynccontextmanager
    async def _inject(self, plan: Round) -> AsyncGenerator[None]:
        seed = f"{self._settings.seed}/{plan.number}"
        faults = [FAULTS[name].repeat(self._ground, name, Random(f"{seed}/{name}")) for name in plan.faults]
        tasks = [*map(asyncio.create_task, faults)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            outcomes = zip(plan.faults, await asyncio.gather(*tasks, return_exceptions=True), strict=True)
            failed = [(name, error) for name, error in outcomes if not isinstance(error, asyncio.CancelledError)]
            self._totals.breaks(plan.number, [f"the fault {name} itself: {error!r}" for name, error in failed])

    async def _work(self, plan: Round, numbers: Iterator[int], kinds: Iterator[str] | None = None) -> list[Ended]:
        """Make cases, `at_once` in parallel, until the round's end, or a case for each name in `kinds`."""
        ends: list[Ended] = []
        until = time.monotonic() + plan.seconds

        async def work() -> None:
            while (kinds or time.monotonic() < until) and not self._stop.is_set():
                number = next(numbers)
                chance = Random(f"{self._settings.seed}/{number}")
                if kinds is None:
                    name = chance.choice([*(HEAVY if chance.random() < _HEAVY_SHARE else LIGHT)])
                elif (name := next(kinds, None)) is None:
                    return
                if "idle" in plan.faults:
                    self._ground.note("idle")
                    await asyncio.sleep(chance.uniform(0, _LONGEST_PAUSE))
                self._ground.begun += 1
                ends.append(await ended(name, KINDS[name], self._prepared(plan, number, chance)))

        await asyncio.gather(*(work() for _ in range(self._settings.at_once)))
        return ends

    def _prepared(self, plan: Round, number: int, chance: Random) -> Case:
        steady, brief = self._ground.providers
        share = _BRIEF_SHARE_IDLE if "idle" in plan.faults else _BRIEF_SHARE
        mine, other = (brief, steady) if chance.random() < share else (steady, brief)
        # Mostly the same provider: a process that holds the conversation is the most important case.
        return Case(f"<{number}>", mine, other if chance.random() < share else mine, chance)


async def sampled(ground: Ground, totals: Totals) -> None:
    """Sample the memory, and update the figures, until cancelled."""
    begun = time.monotonic()
    while True:
        before = time.monotonic()
        await asyncio.sleep(_SAMPLE_EVERY)
        totals.longest_wait = max(totals.longest_wait, time.monotonic() - before - _SAMPLE_EVERY)
        totals.seconds = time.monotonic() - begun
        totals.sample(pid for provider in ground.providers for pid in provider.transport.pids)
        await ground.api.update()
        totals.requests = ground.api.requests
        totals.starts = sum(provider.transport.stats().starts for provider in ground.providers)


async def ended(name: str, kind: Kind, case: Case) -> Ended:
    """Run the case, and return the outcome."""
    begun = time.monotonic()
    error, message = await _error(_bounded(kind(case), case))
    if name.startswith("cli-") and error == "500" and INJECTED not in message.partition(_STDERR)[0]:
        # A tool's side effects must not be repeated, so a later connection error is reported as an API error.
        error = CONNECTION
    return Ended(name, case.mark, begun, time.monotonic(), error, message[:500], case.runs)


async def _error(running: Awaitable[None]) -> tuple[str, str]:
    try:
        await running
    except ModelHTTPError as error:
        return str(error.status_code), str(error)
    except Exception as error:
        if name := next((name for kind, name in _ERRORS.items() if isinstance(error, kind)), None):
            return name, str(error)
        if isinstance(error, OSError) and error.errno == errno.EMFILE:
            return NO_DESCRIPTOR, str(error)
        return OTHER, f"{type(error).__name__}: {error}"
    return RIGHT, ""


async def _bounded(running: Coroutine[Any, Any, None], case: Case) -> None:
    """Await a case with a time limit. Only seconds count in which this process could use the processor."""
    task = asyncio.ensure_future(running)
    try:
        for _ in range(RUN_SECONDS):
            if (await asyncio.wait({task}, timeout=1.0))[0]:
                return task.result()
        raise TimeoutError(f"no end after {RUN_SECONDS} s; {case.provider.transport!r}, {case.other.transport!r}")
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
