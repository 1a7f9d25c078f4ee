"""Waiting leases."""

import asyncio

import pytest

from .conftest import Make, all_rest, figures, lent, waiting

pytestmark = pytest.mark.timeout(10)


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
