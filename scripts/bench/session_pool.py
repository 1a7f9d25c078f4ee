"""What a session pool gains, beside the SDK's own `query()` in the same run.

    python scripts/bench/session_pool.py

Lease (SES-80): the time from asking for a session that was started ahead to having it. Queries (SES-81): a thousand
independent one-shot queries through a pool, its start included, beside some of the SDK's `query()` with the same
sealed options, in turns, each with as many at once as suits it best. Memory (SES-F21): how large the processes become
over five hundred leases, when they are never replaced and when they are.

The scripted API runs in a process of its own. Prints medians and ratios; exits with 1 if a bound is missed.
Milliseconds depend on the computer and on what else it does; ratios do not, much.
"""

import asyncio
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeAlias

import psutil
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage
from claude_agent_sdk import query as sdk_query

from cc_session import SessionPool, sealed_options

LEASES = 200
QUERIES = 1_000
SDK_QUERIES = 40
ROUNDS = 4
MEMORY_LEASES = 500
TRIAL = 60
SDK_TRIAL = 6
MOST_AT_ONCE = 4

MOST_LEASE_MS = 5.0
LEAST_TIMES_THROUGHPUT = 12.0

# Longer than a pool trusts a process without asking it whether it is still there.
PAUSE_SECONDS = 0.06

Ask: TypeAlias = Callable[[str], Awaitable[str | None]]

missed: list[str] = []


def bound(name: str, value: float, limit: float, *, least: bool = False) -> None:
    """Print a figure and remember it if it misses its bound."""
    holds = value >= limit if least else value <= limit
    print(f"  {name:44} {value:12.3f}   {'at least' if least else 'at most'} {limit:g}{'' if holds else '   MISSED'}")
    if not holds:
        missed.append(name)


@contextmanager
def scripted_api() -> Generator[dict[str, str]]:
    """Run the API in a process of its own, and give the environment that leads there."""
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
    """Return how many queries are answered in a second."""
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
    """Time that passed, and time that processors worked for this process and its children."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._cpu = 0.0

    @contextmanager
    def measured(self) -> Generator[None]:
        """Add what passes meanwhile."""
        begun, cpu = time.perf_counter(), _cpu_seconds()
        yield
        self.seconds += time.perf_counter() - begun
        self._cpu += _cpu_seconds() - cpu

    def cpu_ms(self, count: int) -> str:
        """The processor's share of one of so many queries."""
        return f"{self._cpu / count * 1_000:8.1f} ms"


def _children() -> list[psutil.Process]:
    """The Claude Code processes that run."""
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if child.name().startswith("claude"):
                found.append(child)
    return found


def _cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [child.cpu_times() for child in _children()]
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(cpu.user + cpu.system for cpu in running)


def with_sdk(options: ClaudeAgentOptions) -> Ask:
    """Ask with the SDK alone: a process for each query."""

    async def ask(prompt: str) -> str | None:
        answer = None
        async for message in sdk_query(prompt=prompt, options=options):
            if isinstance(message, ResultMessage):
                answer = message.result
        return answer

    return ask


def with_pool(pool: SessionPool) -> Ask:
    """Ask through a pool."""

    async def ask(prompt: str) -> str | None:
        return (await pool.run(prompt)).text

    return ask


@asynccontextmanager
async def warm_pool(options: ClaudeAgentOptions, size: int) -> AsyncGenerator[SessionPool]:
    """Give a pool whose processes have all started and have answered a few times."""
    async with SessionPool(options, size=size, prewarm=0) as pool:
        await pool.warm(size)
        await throughput(with_pool(pool), 5 * size, size)
        yield pool


async def measure_lease(options: ClaudeAgentOptions) -> None:
    """Time leases of a session that waits for one."""
    times: list[float] = []
    async with warm_pool(options, 1) as pool:
        for _ in range(LEASES):
            await asyncio.sleep(PAUSE_SECONDS)
            begun = time.perf_counter()
            async with pool.lease() as session:
                times.append((time.perf_counter() - begun) * 1_000)
                await session.run("Hello.")
    print(f"\nLease of a session that was started ahead, {LEASES} times")
    print(f"  {'p99, ms':44} {statistics.quantiles(times, n=100)[98]:12.3f}")
    bound("median, ms", statistics.median(times), MOST_LEASE_MS)


async def best_pool_size(options: ClaudeAgentOptions) -> int:
    """Return with how many processes a pool answers most."""
    rates: dict[int, float] = {}
    for size in range(1, MOST_AT_ONCE + 1):
        async with warm_pool(options, size) as pool:
            rates[size] = await throughput(with_pool(pool), TRIAL, size)
    return max(rates, key=lambda size: rates[size])


async def best_at_once(options: ClaudeAgentOptions) -> int:
    """Return with how many queries at once the SDK answers most."""
    rates = {
        at_once: await throughput(with_sdk(options), SDK_TRIAL * at_once, at_once)
        for at_once in range(1, MOST_AT_ONCE + 1)
    }
    return max(rates, key=lambda at_once: rates[at_once])


async def measure_queries(options: ClaudeAgentOptions) -> None:
    """Compare the throughput of one-shot queries."""
    size, at_once = await best_pool_size(options), await best_at_once(options)
    ours, theirs = Spent(), Spent()
    async with SessionPool(options, size=size, prewarm=0) as pool:
        with ours.measured():
            await pool.warm(size)
        for _ in range(ROUNDS):  # in turns, so that a busy moment meets both
            with ours.measured():
                await throughput(with_pool(pool), QUERIES // ROUNDS, 2 * size)
            with theirs.measured():
                await throughput(with_sdk(options), SDK_QUERIES // ROUNDS, at_once)
    of_pool, of_sdk = QUERIES / ours.seconds, SDK_QUERIES / theirs.seconds
    print("\nIndependent one-shot queries, per second; and what one takes of a processor, without the API")
    print(f"  {f'pool of {size}, {QUERIES} queries, start included':44} {of_pool:12.3f} {ours.cpu_ms(QUERIES)}")
    print(f"  {f'SDK, {at_once} at once, {SDK_QUERIES} queries':44} {of_sdk:12.3f} {theirs.cpu_ms(SDK_QUERIES)}")
    bound("pool / SDK", of_pool / of_sdk, LEAST_TIMES_THROUGHPUT, least=True)


async def largest_over_leases(pool: SessionPool) -> float:
    """Return the most megabytes that a process of the pool had, over many leases."""
    largest = 0.0
    for _ in range(MEMORY_LEASES // 50):
        await throughput(with_pool(pool), 50, 2)
        largest = max([largest, *(child.memory_info().rss / 1e6 for child in _children())])
    return largest


async def measure_memory(options: ClaudeAgentOptions) -> None:
    """See how large processes become."""
    print(f"\nMemory over {MEMORY_LEASES} leases, two processes")
    for name, limit in (("never replaced", 100_000.0), ("replaced from 250 MB on", 250.0)):
        async with SessionPool(options, size=2, prewarm=0, max_rss_mb=limit) as pool:
            await pool.warm(2)
            start = pool.stats().memory_mb
            largest = await largest_over_leases(pool)
            stats = pool.stats()
        figures = f"all at the start {start:.0f}, at the end {stats.memory_mb:.0f}; largest resident {largest:.0f}"
        print(f"  {name + ', MB':30} {figures}; replaced {sum(stats.recycled.values())}")


async def main() -> int:
    """Measure everything, and return the exit status."""
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    with scripted_api() as env:
        options = sealed_options(system_prompt="You are terse.", model="claude-sonnet-5", env=env)
        await measure_lease(options)
        await measure_queries(options)
        await measure_memory(options)
    if missed:
        print(f"\nMissed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
