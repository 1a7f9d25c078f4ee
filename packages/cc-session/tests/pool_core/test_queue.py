"""Waiting leases."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from cc_session import QueueTimeoutError, Timeouts

from .conftest import Make, Starter, all_rest, figures, launch, lent, use, waiting

pytestmark = pytest.mark.timeout(10)


async def test_a_lease_that_waits_too_long_reports_busy_processes(make: Make) -> None:
    """SES-87."""
    pool = make()
    hurry = replace(launch(), timeouts=Timeouts(queue=0.02))
    async with lent(pool):
        with pytest.raises(QueueTimeoutError) as raised:
            await use(pool, hurry)
        next_one = await waiting(pool)
        assert pool.stats().waiting_seconds > 0
    assert raised.value.busy_seconds[0] >= 0.02
    assert (raised.value.size, raised.value.waiting, len(raised.value.busy_seconds)) == (1, 1, 1)
    await next_one
    assert figures(pool, "queue_timeouts", "waiting", "waiting_seconds", "waits", "leases") == (1, 0, 0.0, 2, 2)
    [start, wait] = pool.stats().queue_seconds
    assert 0 <= start
    assert 0 < wait


async def test_leases_are_served_in_the_order_in_which_they_came(make: Make) -> None:
    """SES-66: for any options, so that none waits for ever."""
    pool = make()
    order: list[str] = []

    async def lease(name: str) -> None:
        async with lent(pool, env={"KIND": name[0]}):
            order.append(name)

    async with lent(pool):
        tasks = [asyncio.ensure_future(lease(name)) for name in ("B0", "A1", "B2", "A3")]
        await all_rest()
        assert (order, *figures(pool, "waiting")) == ([], 4)
    await asyncio.gather(*tasks)
    assert order == ["B0", "A1", "B2", "A3"]
    assert figures(pool, "waits", "leases") == (5, 5)

    async with lent(pool):
        others = [await waiting(pool) for _ in range(3)]
        others[1].cancel()
        await all_rest()
        assert figures(pool, "waiting") == (2,)
    await asyncio.wait(others, timeout=10)
    assert [other.cancelled() for other in others] == [False, True, False]
    assert [other.done() for other in others] == [True, True, True]


async def test_what_the_first_has_no_use_for_goes_to_those_behind_it(make: Make, starter: Starter) -> None:
    """SES-66."""
    pool = make(size=2, start_limit=1)
    starter.hold()
    first = await waiting(pool, env={"KIND": "A"})
    second = await waiting(pool, env={"KIND": "B"})
    starter.permits.release()
    await all_rest()
    assert (first.done(), second.done(), len(starter.sessions)) == (True, False, 2)
    third = await waiting(pool, env={"KIND": "A"})
    assert third.done()
    starter.let_go()
    assert (await second).launch.options.env == {"KIND": "B"}


async def test_a_start_that_nobody_waits_for_any_more_is_not_lost(make: Make, starter: Starter) -> None:
    """SES-24, SES-65."""
    pool = make()
    starter.hold()
    task = await waiting(pool)
    assert figures(pool, "starting") == (1,)
    task.cancel()
    starter.let_go()
    await all_rest()
    assert figures(pool, "starting", "idle") == (0, 1)
    assert (await use(pool)).number == 0


@pytest.mark.parametrize("is_sure", [True, False])
async def test_a_lease_cancelled_at_any_moment_is_given_back(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_sure: bool
) -> None:
    """SES-75: also in the loop step in which a process becomes free."""
    monkeypatch.setattr("cc_session.pool.worker._SURE_SECONDS", 1.0 if is_sure else -1.0)
    pool = make()
    cancelled = 0
    for step in range(20):
        task = asyncio.ensure_future(use(pool, model=str(step)))
        for _ in range(step):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        cancelled += task.cancelled()
        await all_rest()
        assert figures(pool, "busy", "resetting", "waiting") == (0, 0, 0)
    assert cancelled > 5
    assert not caplog.records
    await use(pool)
    assert figures(pool, "idle", "starts", "running") == (1, 1, 1)
