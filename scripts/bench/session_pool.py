"""Measure a session pool in comparison with the SDK's own `query()`.

    python scripts/bench/session_pool.py [--quick] [--json FILE]

Lease (SES-80): the time to get a session that was started ahead. Reset: back to an empty conversation. Queries
(SES-81): a thousand independent one-shot queries through a pool, its start included, compared with some of the SDK's
`query()` with the same sealed options, in alternation, each with its own best number at once. Memory (SES-F21): the
size of the processes over five hundred leases, with and without replacement.

The scripted API runs in a process of its own.
"""

import asyncio
import resource
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeAlias

import psutil
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage
from claude_agent_sdk import query as sdk_query
from command_line import main
from harness.figures import Effort, Figure, Group, Suite
from harness.measure import milliseconds

from cc_session import PoolLimits, Session, SessionPool, sealed_options

LEASES = 200
RESETS = 60
QUERIES = 1_000
SDK_QUERIES = 40
ROUNDS = 4
MEMORY_LEASES = 500
LEASES_PER_LOOK = 50
TRIAL = 60
SDK_TRIAL = 6
MOST_AT_ONCE = 4

POOL, SDK = "SessionPool", "claude_agent_sdk.query()"
NEVER, FROM_250 = "SessionPool, processes never replaced", "SessionPool, replaced from 250 MB on"

# Longer than the time for which a pool uses a process without a health check.
PAUSE_SECONDS = 0.06

Ask: TypeAlias = Callable[[str], Awaitable[str | None]]


@contextmanager
def scripted_api() -> Generator[dict[str, str]]:
    """Run the API in a process of its own, and yield the environment variables for it."""
    command = [sys.executable, "-m", "cc_loopback", "--port", "0", "--print-env"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as api:
        try:
            yield dict(_variables(api))
        finally:
            api.terminate()


def _variables(api: subprocess.Popen[str]) -> Generator[tuple[str, str]]:
    if api.stdout is None:
        raise RuntimeError("the API has no output")
    for line in api.stdout:
        if line.startswith("export "):
            name, _, value = line.strip().removeprefix("export ").partition("=")
            yield name, value.strip("'")
            if name == "no_proxy":
                return


async def throughput(ask: Ask, count: int, at_once: int) -> float:
    """Return the number of queries per second."""
    slots = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        async with slots:
            answer = await ask(f"Query {number}.")
        if answer is None or f"Query {number}." not in answer:
            raise RuntimeError(f"query {number} was answered with {answer!r}")

    begun = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(count)))
    return count / (time.perf_counter() - begun)


class Spent:
    """Wall-clock time, and processor time of this process and its children."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._cpu = 0.0

    @contextmanager
    def measured(self) -> Generator[None]:
        """Add the time spent in the block."""
        begun, cpu = time.perf_counter(), _cpu_seconds()
        yield
        self.seconds += time.perf_counter() - begun
        self._cpu += _cpu_seconds() - cpu

    def cpu_ms(self, count: int) -> float:
        """Return the processor milliseconds of one query out of `count`."""
        return self._cpu / count * 1_000


def _children() -> list[psutil.Process]:
    """Return the running Claude Code processes."""
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if child.name().startswith("claude"):
                found.append(child)
    return found


def _cpu_seconds() -> float:
    if sys.platform == "win32":
        raise NotImplementedError("needs POSIX")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [child.cpu_times() for child in _children()]
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(cpu.user + cpu.system for cpu in running)


def with_sdk(options: ClaudeAgentOptions) -> Ask:
    """Send queries with the SDK alone: a process for each query."""

    async def ask(prompt: str) -> str | None:
        answer = None
        async for message in sdk_query(prompt=prompt, options=options):
            if isinstance(message, ResultMessage):
                answer = message.result
        return answer

    return ask


def with_pool(pool: SessionPool) -> Ask:
    """Send queries through a pool."""

    async def ask(prompt: str) -> str | None:
        return (await pool.run(prompt)).text

    return ask


@asynccontextmanager
async def warm_pool(options: ClaudeAgentOptions, size: int) -> AsyncGenerator[SessionPool]:
    """Yield a pool with all processes started and used a few times."""
    async with SessionPool(options, limits=PoolLimits(size=size, prewarm=0)) as pool:
        await pool.warm(size)
        await throughput(with_pool(pool), 5 * size, size)
        yield pool


async def measure_lease(options: ClaudeAgentOptions, effort: Effort) -> list[Figure]:
    """Time leases of a session that is ready."""
    times: list[float] = []
    async with warm_pool(options, 1) as pool:
        for _ in range(effort.times(LEASES)):
            await asyncio.sleep(PAUSE_SECONDS)
            begun = time.perf_counter()
            async with pool.lease() as session:
                times.append((time.perf_counter() - begun) * 1_000)
                await session.run("Hello.")
    return [Group("session_pool", "Lease of a session that was started ahead").figure(POOL, times)]


async def measure_reset(options: ClaudeAgentOptions, effort: Effort) -> list[Figure]:
    """Time the reset to an empty conversation, after a turn."""
    times: list[float] = []
    async with await Session.open(options) as session:
        for _ in range(effort.times(RESETS)):
            await session.run("Hello.")
            times.append(await milliseconds(session.reset))
    return [Group("session_pool", "Reset of a session after a turn").figure("Session", times)]


async def best_pool_size(options: ClaudeAgentOptions, effort: Effort) -> int:
    """Return the number of processes with the best throughput of the pool."""
    rates: dict[int, float] = {}
    for size in range(1, effort.times(MOST_AT_ONCE) + 1):
        async with warm_pool(options, size) as pool:
            rates[size] = await throughput(with_pool(pool), effort.times(TRIAL, 4), size)
    return max(rates, key=lambda size: rates[size])


async def best_at_once(options: ClaudeAgentOptions, effort: Effort) -> int:
    """Return the number of parallel queries with the best throughput of the SDK."""
    rates = {
        at_once: await throughput(with_sdk(options), effort.times(SDK_TRIAL, 1) * at_once, at_once)
        for at_once in range(1, effort.times(MOST_AT_ONCE) + 1)
    }
    return max(rates, key=lambda at_once: rates[at_once])


async def measure_queries(options: ClaudeAgentOptions, effort: Effort) -> list[Figure]:
    """Compare the throughput of one-shot queries."""
    size, at_once = await best_pool_size(options, effort), await best_at_once(options, effort)
    queries, sdk_queries, rounds = effort.times(QUERIES, 16), effort.times(SDK_QUERIES, 4), effort.times(ROUNDS)
    ours, theirs = Spent(), Spent()
    async with SessionPool(options, limits=PoolLimits(size=size, prewarm=0)) as pool:
        with ours.measured():
            await pool.warm(size)
        for _ in range(rounds):  # in alternation, so that a busy moment affects both
            with ours.measured():
                await throughput(with_pool(pool), queries // rounds, 2 * size)
            with theirs.measured():
                await throughput(with_sdk(options), sdk_queries // rounds, at_once)
    of_pool, of_sdk = queries / ours.seconds, sdk_queries / theirs.seconds
    rate = Group("session_pool", "Independent one-shot queries, start included", "per s")
    work = Group("session_pool", "Processor time for a one-shot query, without the API")
    return [
        *rate.figures({POOL: [of_pool], SDK: [of_sdk]}),
        Group("session_pool", "Throughput of the pool, in multiples of the SDK's", "times").figure(
            POOL, [of_pool / of_sdk]
        ),
        *work.figures({POOL: [ours.cpu_ms(queries)], SDK: [theirs.cpu_ms(sdk_queries)]}, SDK),
    ]


async def largest_over_leases(pool: SessionPool, leases: int) -> float:
    """Return the peak megabytes of a process of the pool, over many leases."""
    largest = 0.0
    for _ in range(leases // LEASES_PER_LOOK):
        await throughput(with_pool(pool), LEASES_PER_LOOK, 2)
        largest = max([largest, *(child.memory_info().rss / 1e6 for child in _children())])
    return largest


async def measure_memory(options: ClaudeAgentOptions, effort: Effort) -> list[Figure]:
    """Measure the memory of the processes."""
    largest: dict[str, list[float]] = {}
    for name, limit in ((NEVER, 100_000.0), (FROM_250, 250.0)):
        async with SessionPool(options, limits=PoolLimits(size=2, prewarm=0, max_rss_mb=limit)) as pool:
            await pool.warm(2)
            largest[name] = [await largest_over_leases(pool, effort.times(MEMORY_LEASES, LEASES_PER_LOOK))]
    return Group("session_pool", "Most resident memory of one of two processes, over many leases", "MB").figures(
        largest
    )


async def measure(effort: Effort) -> list[Figure]:
    """Measure everything."""
    with scripted_api() as env:
        options = sealed_options(system_prompt="You are terse.", model="claude-sonnet-5", env=env)
        return [
            *await measure_lease(options, effort),
            *await measure_reset(options, effort),
            *await measure_queries(options, effort),
            *await measure_memory(options, effort),
        ]


SUITE = Suite("session_pool", "A pool of sessions beside the SDK's query()", measure)

if __name__ == "__main__":
    sys.exit(main([SUITE], __doc__))
