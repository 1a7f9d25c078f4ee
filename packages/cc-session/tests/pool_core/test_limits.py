"""Limits on number and memory."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from cc_session import PoolLimits, SessionPool
from cc_session.pool.core import Lease
from cc_session.process.cli_process import Memory

from .conftest import Make, Starter, all_rest, figures, launch, lent, measuring, use, waiting

pytestmark = pytest.mark.timeout(10)


async def test_processes_and_starts_never_exceed_the_limits(
    make: Make, starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-25, SES-66."""
    monkeypatch.setattr("cc_session.pool.core._MAX_WAIT_IN_STARTS", -1)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    pool = make(size=3)
    starter.hold()
    tasks = [asyncio.ensure_future(use(pool)) for _ in range(9)]
    for starting, starts in ((2, 2), (2, 3), (1, 3)):
        await all_rest()
        assert (*figures(pool, "starting"), len(starter.sessions)) == (starting, starts)
        starter.permits.release()
    starter.let_go()
    await asyncio.gather(*tasks)
    await all_rest()  # a start may end after the uses
    assert figures(pool, "starts", "leases", "idle") == (3, 9, 3)


async def test_a_lease_that_a_process_waits_for_does_not_wait_for_that_process(make: Make, starter: Starter) -> None:
    """SES-102: it may have one more, which ends when it is idle; other leases wait."""
    pool = make(size=1)
    async with lent(pool) as first:
        other = await waiting(pool)
        first.is_waiting = True
        awaited = Lease(launch())
        awaited.is_awaited = True
        async with asyncio.timeout(5):
            await pool.acquire(awaited)
        assert figures(pool, "busy", "waiting") == (2, 1)
        pool.give_back(awaited)
        await all_rest()
        assert figures(pool, "busy", "waiting", "recycled") == (1, 1, {"evicted": 1})
    assert (await other).number == 0
    assert len(starter.sessions) == 2


class Clock:
    """The pool's clock in place of the machine's; it moves on when nothing else does."""

    def __init__(self) -> None:
        self._time = 0.0
        self._sleepers: dict[asyncio.Event, float] = {}

    def monotonic(self) -> float:
        return self._time

    async def sleep(self, seconds: float) -> None:
        event = asyncio.Event()
        self._sleepers[event] = self._time + seconds
        await event.wait()

    async def run(self, *work: Coroutine[Any, Any, None]) -> None:
        tasks = asyncio.gather(*work)
        await all_rest()
        while not tasks.done():
            event = min(self._sleepers, key=self._sleepers.__getitem__)
            self._time = self._sleepers.pop(event)
            event.set()
            await all_rest()
        await tasks


async def test_a_lease_inside_of_a_lease_gets_another_process(make: Make) -> None:
    """SES-102: the first lease may last for ever."""
    pool = make(size=2)
    async with asyncio.timeout(5), lent(pool), lent(pool):
        assert figures(pool, "busy") == (2,)


async def test_no_more_are_started_than_the_memory_allows(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-66, ARCH-06: but a single process is always allowed, and shared pages count once."""
    monkeypatch.setattr("cc_session.pool.core._MAX_WAIT_IN_STARTS", -1)
    monkeypatch.setattr("cc_session.pool.core._CHECK_SECONDS", 1000.0)  # a check during a start would begin another
    monkeypatch.setattr("cc_session.pool.processes.memory_of", measuring(Memory(100, 50)))
    for limit, starts in ((1, 1), (249, 1), (251, 2)):
        pool = make(size=4, max_total_mb=limit)
        async with lent(pool):
            others = [asyncio.create_task(use(pool)) for _ in range(3)]
            await all_rest()
        await asyncio.gather(*others)
        await all_rest()
        assert figures(pool, "starts") == (starts,)
        await use(pool, env={"KIND": "Another."})
        assert pool.stats().recycled == {"evicted": 1}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"size": 0}, "size is 0"),
        ({"size": 2, "prewarm": 3}, "prewarm is 3"),
        ({"start_limit": 0}, "start_limit is 0"),
        ({"max_uses": 0}, "max_uses is 0"),
        ({"max_rss_mb": -1}, "max_rss_mb is -1"),
        ({"idle_seconds": 0}, "idle_seconds is 0"),
    ],
)
def test_invalid_limits_are_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PoolLimits(**limits)


@pytest.mark.parametrize(("name", "advice"), [("size", r": use limits=PoolLimits\(size=\.\.\.\)"), ("colour", "$")])
def test_limits_outside_of_their_class_are_refused_with_its_name(name: str, advice: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'{advice}"):
        SessionPool(**{name: 4})  # pyright: ignore[reportArgumentType] - that is the point
