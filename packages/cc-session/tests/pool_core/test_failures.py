"""Failed starts, dying processes, and the end of a pool."""

import asyncio
from typing import Any, cast

import pytest

from cc_types import CLIConnectionError, ControlTimeoutError, ProcessExitedError

from ..conftest import all_raise
from .conftest import Make, PretendedSession, Starter, all_rest, figures, launch, lent, use, waiting

pytestmark = pytest.mark.timeout(10)


async def test_a_failed_start_fails_each_waiting_lease_and_the_next_tries_again(make: Make, starter: Starter) -> None:
    """SES-96, SES-56, SES-87: a start that fails by a timeout is not a queue timeout."""
    pool = make()
    starter.hold()
    starter.error = ControlTimeoutError(subtype="initialize", seconds=1.0)
    tasks = [await waiting(pool) for _ in range(2)]
    warming = asyncio.ensure_future(pool.warm(launch(), 1))
    starter.let_go()
    await all_raise(ControlTimeoutError, *tasks, warming)
    assert figures(pool, "failed_starts", "starts", "starting", "waiting") == (3, 0, 0, 0)
    starter.error = None
    await use(pool)
    assert figures(pool, "starts") == (1,)


@pytest.mark.parametrize(
    ("retries", "has_answered", "deaths", "is_answered"),
    [(0, False, 1, False), (1, False, 1, True), (1, False, 2, False), (2, False, 2, True), (5, True, 1, False)],
)
async def test_a_turn_is_retried_up_to_the_limit_until_an_answer_begins(
    make: Make, starter: Starter, retries: int, has_answered: bool, deaths: int, is_answered: bool
) -> None:
    """SES-73."""
    pool = make()

    async def ask(lent_session: Any) -> Any:
        session: PretendedSession = lent_session
        session.side_effects.answered = has_answered
        if session.number < deaths:
            await session.close()
            raise ProcessExitedError(exit_code=-9)
        return "An answer."

    running = pool.run(launch(), ask, retries)
    if is_answered:
        assert await running == "An answer."
    else:
        with pytest.raises(ProcessExitedError):
            await running
    await all_rest()
    assert pool.stats().leases == len(starter.sessions) == min(deaths + 1, 1 if has_answered else retries + 1)
    assert figures(pool, "busy") == (0,)


async def test_closing_fails_what_waits_and_ends_what_runs(make: Make, starter: Starter) -> None:
    """SES-23, SES-27."""
    pool = make(size=3)
    idle = await use(pool, env={"KIND": "Idle."})
    async with lent(pool) as leased:
        starter.hold()
        tasks = [await waiting(pool, env={"KIND": kind}) for kind in ("Another.", "A third.")]
        tasks.append(asyncio.ensure_future(cast("Any", pool.warm(launch(), 2))))
        await all_rest()
        assert figures(pool, "busy", "starting", "waiting") == (1, 2, 2)
        await asyncio.gather(pool.aclose(), pool.aclose())
        late = use(pool), pool.warm(launch(), 1)
        await all_raise(CLIConnectionError, *tasks, *late, match="closed")
        assert (idle.state, leased.state) == ("dead", "dead")
    assert figures(pool, "idle", "busy", "resetting", "starting", "waiting") == (0, 0, 0, 0, 0)
    assert not pool.stats().recycled.keys() - {"evicted"}
