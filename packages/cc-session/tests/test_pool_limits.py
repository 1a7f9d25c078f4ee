"""How many processes a pool has, how long it keeps them, and how large they get."""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import JsonObject, LoopbackServer
from cc_session import PoolStats, Session, SessionPool

Until = Callable[[Callable[[], bool]], Any]
Processes = Callable[[], list[psutil.Process]]


def folders_in(temporary: Path) -> list[Path]:
    return [*temporary.glob("cc-session-*")]


def answer(_body: JsonObject) -> str:
    return "Hello."


def resident_mb(processes: list[psutil.Process]) -> list[float]:
    found: list[float] = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(process.memory_info().rss / 1e6)
    return found


async def test_there_are_never_more_processes_than_the_size_nor_more_starts_than_the_limit(
    server: LoopbackServer, options: ClaudeAgentOptions, held: Any, until: Until, processes: Processes
) -> None:
    """SES-25, SES-66."""
    seen: list[PoolStats] = []

    async def watch() -> None:
        while True:
            seen.append(pool.stats())
            await asyncio.sleep(0.002)

    async with SessionPool(options, size=3, prewarm=0, start_limit=2) as pool:
        watching = asyncio.ensure_future(watch())
        turns = [asyncio.ensure_future(pool.run(f"Hello {number}.")) for number in range(9)]
        await until(lambda: pool.stats().busy == 3)
        server.respond = answer
        for turn in turns[:3]:  # those that were asked when nobody answered
            turn.cancel()
        assert [(await turn).text for turn in turns[3:]] == ["Hello."] * 6
        watching.cancel()
        assert len(processes()) == 3
    assert max(stats.starting for stats in seen) == 2
    assert max(stats.running + stats.starting for stats in seen) == 3


async def test_warm_returns_when_the_processes_are_ready(server: LoopbackServer, options: ClaudeAgentOptions) -> None:
    """SES-65."""
    async with SessionPool(options, size=3, prewarm=0) as pool:
        await pool.warm(2)
        assert (pool.stats().idle, pool.stats().starts) == (2, 2)
        async with pool.lease():
            await pool.warm(2)  # the leased one counts
            assert pool.stats().starts == 2
            await pool.warm(3)
            assert pool.stats().starts == 3
        await pool.warm(1, system_prompt="Another.")  # in the place of an idle one
        assert pool.stats().recycled == {"evicted": 1}
        for count in (4, -1):
            with pytest.raises(ValueError, match="cannot be warm"):
                await pool.warm(count)


async def test_pools_that_are_asked_to_be_warm_for_more_than_they_hold_do_it_in_turn(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-65."""
    async with SessionPool(options, size=2, prewarm=0) as pool:
        await asyncio.gather(*(pool.warm(2, system_prompt=prompt) for prompt in ("A", "B", "A")))
        assert pool.stats().starts == 6
        assert pool.stats().recycled == {"evicted": 4}


async def test_spare_processes_are_there_before_they_are_needed(
    server: LoopbackServer, options: ClaudeAgentOptions, until: Until
) -> None:
    """SES-65."""
    async with SessionPool(options, size=4, prewarm=2) as pool:
        await until(lambda: pool.stats().idle == 2)
        async with pool.lease(), pool.lease():
            await until(lambda: pool.stats().idle == 2)
            async with pool.lease(), pool.lease():
                assert pool.stats().running == 4  # and no more, since that is the size
        stats = pool.stats()
        assert (stats.leases, stats.waits, stats.starts) == (4, 0, 4)


async def test_with_fresh_processes_only_there_is_a_spare_one_each_time(
    server: LoopbackServer, options: ClaudeAgentOptions, until: Until
) -> None:
    """SES-63, SES-65."""
    async with SessionPool(options, size=2, prewarm=1, reset="fresh") as pool:
        pids: set[int | None] = set()
        for number in range(3):
            await until(lambda: pool.stats().idle >= 1)
            async with pool.lease() as session:
                await session.run("Hello.")
                pids.add(session.pid)
            await until(lambda count=number + 1: pool.stats().recycled == {"fresh": count})
        assert len(pids) == 3
        assert pool.stats().waits == 0


async def test_clear_leaves_the_same_process_and_an_echo(server: LoopbackServer, options: ClaudeAgentOptions) -> None:
    """SES-63: by choice."""
    async with SessionPool(options, size=1, prewarm=0, reset="clear") as pool:
        for _ in range(3):
            async with pool.lease() as session:
                await session.run("One.")
                await session.run("Two.")
        assert pool.stats().starts == 1
    first, later = server.requests[0], server.requests[-2]
    assert "/clear" not in str(first)
    assert "<command-name>/clear</command-name>" in str(later)
    assert "Two." not in str(later)


async def test_a_process_is_replaced_after_so_many_uses(server: LoopbackServer, options: ClaudeAgentOptions) -> None:
    """SES-66."""
    async with SessionPool(options, size=1, prewarm=0, max_uses=2) as pool:
        for _ in range(5):
            await pool.run("Hello.")
        assert pool.stats().starts == 3
        assert pool.stats().recycled == {"uses": 2}


async def test_a_process_that_is_too_large_is_replaced_when_it_is_given_back(
    server: LoopbackServer, options: ClaudeAgentOptions, until: Until
) -> None:
    """SES-66."""
    async with SessionPool(options, size=1, prewarm=0, max_rss_mb=1) as pool:
        for _ in range(2):
            await pool.run("Hello.")
        await until(lambda: pool.stats().recycled == {"memory": 2})


async def test_processes_are_measured(
    server: LoopbackServer, options: ClaudeAgentOptions, until: Until, processes: Processes
) -> None:
    """SES-66, SES-68: on Linux, pages of the program itself are counted once."""
    async with SessionPool(options, size=2, prewarm=0) as pool:
        await pool.warm(2)
        low, high = (0.4, 0.95) if sys.platform == "linux" else (0.95, 1.2)
        await until(lambda: low < pool.stats().memory_mb / sum(resident_mb(processes())) < high)


async def test_no_more_are_started_than_the_memory_allows(server: LoopbackServer, options: ClaudeAgentOptions) -> None:
    """SES-66: but one is always allowed."""
    async with SessionPool(options, size=4, prewarm=0, max_total_mb=1) as pool:
        await asyncio.gather(*(pool.run(f"Hello {number}.") for number in range(4)))
        await pool.run("Hello.", system_prompt="Another.")
        assert pool.stats().starts == 2
        assert pool.stats().recycled == {"evicted": 1}


async def test_idle_processes_end_and_spare_ones_stay(
    server: LoopbackServer, options: ClaudeAgentOptions, until: Until, processes: Processes
) -> None:
    """SES-66."""
    async with SessionPool(options, size=3, prewarm=1, idle_seconds=0.5) as pool:
        await pool.warm(3)
        await until(lambda: pool.stats().recycled == {"idle": 2})
        await until(lambda: len(processes()) == 1)
        assert pool.stats().idle == 1
        await asyncio.sleep(1.2)
        assert pool.stats().idle == 1


async def test_a_spare_process_that_dies_is_replaced_before_anybody_asks(
    server: LoopbackServer, options: ClaudeAgentOptions, until: Until, processes: Processes
) -> None:
    """SES-65, SES-67."""
    async with SessionPool(options, size=2, prewarm=1) as pool:
        await until(lambda: pool.stats().idle == 1)
        [process] = processes()
        process.kill()
        await until(lambda: pool.stats().recycled == {"dead": 1} and pool.stats().idle == 1)
        assert pool.stats().starts == 2


async def test_processes_of_yesterday_are_replaced(
    server: LoopbackServer, options: ClaudeAgentOptions, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    """SES-62: the CLI would tell the model that the date has changed."""

    class Tomorrow:
        @staticmethod
        def today() -> str:
            return "tomorrow"

    async with SessionPool(options, size=2, prewarm=0) as pool:
        await pool.run("Hello.")
        await until(lambda: pool.stats().idle == 1)
        async with pool.lease():
            monkeypatch.setattr("cc_session._worker.datetime.date", Tomorrow)
        await pool.run("Hello.")
        assert pool.stats().recycled == {"date": 1}


@pytest.mark.timeout(180)
async def test_five_hundred_leases_stay_within_the_memory_and_leave_nothing(
    server: LoopbackServer, options: ClaudeAgentOptions, temporary: Path, processes: Processes
) -> None:
    """SES-66, SES-F21."""
    async with await Session.open(options) as session:
        limit = psutil.Process(session.pid).memory_info().rss / 1e6 + 70  # which hundreds of turns may pass
    largest = 0.0
    async with SessionPool(options, size=2, prewarm=0, max_rss_mb=limit) as pool:
        for _ in range(10):
            await asyncio.gather(*(pool.run("x" * 1000) for _ in range(50)))
            largest = max(largest, *(process.memory_info().rss / 1e6 for process in processes()))
        stats = pool.stats()
        assert (stats.leases, stats.busy, stats.waiting) == (500, 0, 0)
        # One that took the place of another may not have been needed any more.
        assert 0 <= stats.reuses - (500 - stats.starts) <= 2
        # How much one turn makes a process grow before it is given back is the CLI's affair; it is some 50 MB at most.
        assert largest < limit + 60
    assert not folders_in(temporary)
