"""Failed starts, dying processes, and the end of a pool."""

import asyncio
from typing import Any, cast

import pytest

from cc_types import CLIConnectionError, ControlTimeoutError

from ..conftest import all_raise
from .conftest import Make, Starter, all_rest, figures, launch, lent, use, waiting

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
