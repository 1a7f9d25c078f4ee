"""Processes ready ahead of need, and the idle timeout."""

import asyncio

import pytest

from cc_session import PoolLimits, SessionPool
from cc_types import CLINotFoundError

from ..conftest import until
from .conftest import Make, Starter, all_rest, figures, launch, lent, use

pytestmark = pytest.mark.timeout(10)


async def test_warm_returns_when_the_processes_are_ready(make: Make, starter: Starter) -> None:
    """SES-65."""
    pool = make(size=3)
    starter.hold()
    warming = asyncio.ensure_future(pool.warm(launch(), 2))
    starter.permits.release()
    await all_rest()
    assert not warming.done()
    starter.let_go()
    await warming
    assert figures(pool, "idle", "starts") == (2, 2)


@pytest.mark.parametrize("count", [4, -1])
async def test_warm_refuses_more_processes_than_the_size(count: int) -> None:
    with pytest.raises(ValueError, match="cannot be warm"):
        await SessionPool(limits=PoolLimits(size=3)).warm(count)


async def test_prewarmed_processes_are_there_before_they_are_needed(make: Make) -> None:
    """SES-65: with a lease's first moments left to the lease, which a start would slow down."""
    pool = make(size=4, prewarm=2)
    await pool.prewarm()
    await all_rest()
    assert figures(pool, "idle") == (2,)
    async with lent(pool):
        await all_rest()
        assert figures(pool, "idle", "starting") == (1, 0)
    await all_rest()
    assert figures(pool, "idle", "starts") == (2, 2)


async def test_the_idle_timeout_ends_all_but_prewarmed_processes(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-65, SES-66."""
    monkeypatch.setattr("cc_session.pool.core._CHECK_SECONDS", 0.01)
    pool = make(size=4, prewarm=1, idle_seconds=0.01)
    await pool.warm(launch(), 3)
    async with lent(pool, env={"KIND": "Leased."}) as leased:
        await until(lambda: pool.stats().recycled == {"idle": 2})
        await asyncio.sleep(0.05)  # some more checks
        assert figures(pool, "idle", "busy", "starts") == (1, 1, 4)
        assert leased.state == "idle"


async def test_a_prewarmed_process_that_dies_is_replaced(
    make: Make, starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-65, SES-67: before the first lease."""
    monkeypatch.setattr("cc_session.pool.core._CHECK_SECONDS", 0.01)
    pool = make(size=4, prewarm=1)
    await pool.prewarm()
    await until(lambda: pool.stats().idle == 1)
    await starter.sessions[0].close()
    await until(lambda: pool.stats().recycled == {"dead": 1} and pool.stats().idle == 1)
    assert figures(pool, "starts") == (2,)


async def test_a_failed_prewarm_is_logged_and_tried_again_with_the_next_lease(
    make: Make, starter: Starter, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-65."""
    starter.error = CLINotFoundError(path="/nowhere")
    pool = make(size=3, prewarm=2)
    await pool.prewarm()
    await all_rest()
    assert figures(pool, "failed_starts", "starting") == (2, 0)  # two were started at once
    assert "A Claude Code process for later requests could not be started" in caplog.text
    starter.error = None
    await use(pool)
    await pool.prewarm()
    await all_rest()
    assert figures(pool, "idle", "failed_starts") == (2, 2)
