"""Measure sessions and a session pool in comparison with the SDK's client and its `query()`.

Warm turns (SES-79): alternately in a session and in the SDK's client, so that other programs affect both and both
conversations grow alike, with the same options over the loopback API, which answers at once. Lease (SES-80): the time
to get a session that was started ahead. Queries (SES-81): a thousand independent
single queries through a pool, with the start, compared with some by the SDK's `query()` with the same sealed options,
in alternation, each with the best number at once. Burst (SES-102): forty prompts at once for a cold pool with one place
and with eight; the API answers at once, where more processes only take processors from each other, and after three
seconds, where the pool has to reach its size.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, query

from cc_loopback import JsonObject, LoopbackServer
from cc_session import PoolLimits, Session, SessionPool, sealed_options

from .arena import scripted_api
from .harness import Bound, Effort, Figure, Group, Suite, alternated, milliseconds

LEASES = 200
QUERIES, SDK_QUERIES = 1_000, 40
ROUNDS = 4
TRIAL, SDK_TRIAL = 60, 6
MOST_AT_ONCE = 4
TURNS, WARM_UP = 400, 20
BARE, SESSION = "bare turn of the SDK's client", "Session.run"
POOL, SDK = "SessionPool", "claude_agent_sdk.query()"
# Longer than the time for which a pool uses a process without a health check.
PAUSE_SECONDS = 0.06
BURST, PLACES, SLOW_SECONDS = 40, 8, 3.0

Ask: TypeAlias = Callable[[str], Awaitable[str | None]]


async def seconds_of(ask: Ask, count: int, at_once: int) -> float:
    slots = asyncio.Semaphore(at_once)

    async def ask_once(number: int) -> None:
        async with slots:
            answer = await ask(f"Query {number}.")
        if answer != f"Query {number}.":
            raise RuntimeError(f"query {number} was answered with {answer!r}")

    begun = time.perf_counter()
    await asyncio.gather(*(ask_once(number) for number in range(count)))
    return time.perf_counter() - begun


async def ask_sdk(options: ClaudeAgentOptions, prompt: str) -> str | None:
    """Send a query with the SDK alone, in a new process."""
    answer = None
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            answer = message.result
    return answer


async def ask_pool(pool: SessionPool, prompt: str) -> str | None:
    return (await pool.run(prompt)).text


@asynccontextmanager
async def warm_pool(options: ClaudeAgentOptions, size: int) -> AsyncGenerator[SessionPool]:
    """Yield a pool with all processes started and used a few times."""
    async with SessionPool(options, limits=PoolLimits(size=size, prewarm=0)) as pool:
        await pool.warm(size)
        await seconds_of(partial(ask_pool, pool), 5 * size, size)
        yield pool


async def measure_lease(options: ClaudeAgentOptions, effort: Effort) -> list[Figure]:
    times: list[float] = []
    async with warm_pool(options, 1) as pool:
        for _ in range(effort.times(LEASES)):
            await asyncio.sleep(PAUSE_SECONDS)
            begun = time.perf_counter()
            async with pool.lease() as session:
                times.append((time.perf_counter() - begun) * 1_000)
                await session.run("Hello.")
    return [Group("Lease of a session that was started ahead").figure(POOL, times, Bound(5.0))]


async def measure_queries(options: ClaudeAgentOptions, effort: Effort) -> list[Figure]:
    """Compare the throughput for single queries, each way with the best number of processes."""
    ours: dict[int, float] = {}
    theirs: dict[int, float] = {}
    for number in range(1, effort.times(MOST_AT_ONCE) + 1):
        async with warm_pool(options, number) as pool:
            ours[number] = await seconds_of(partial(ask_pool, pool), effort.times(TRIAL, 4), number)
        count = effort.times(SDK_TRIAL, 1) * number
        theirs[number] = await seconds_of(partial(ask_sdk, options), count, number) / count
    size, at_once = min(ours, key=lambda number: ours[number]), min(theirs, key=lambda number: theirs[number])
    queries, sdk_queries, rounds = effort.times(QUERIES, 16), effort.times(SDK_QUERIES, 4), effort.times(ROUNDS)
    taken, sdk_taken = 0.0, 0.0
    async with SessionPool(options, limits=PoolLimits(size=size, prewarm=0)) as pool:
        taken += await milliseconds(lambda: pool.warm(size)) / 1_000
        for _ in range(rounds):  # in alternation, so that a busy moment affects both
            taken += await seconds_of(partial(ask_pool, pool), queries // rounds, 2 * size)
            sdk_taken += await seconds_of(partial(ask_sdk, options), sdk_queries // rounds, at_once)
    rates = {POOL: [queries / taken], SDK: [sdk_queries / sdk_taken]}
    ratio = Group("Throughput of the pool, in multiples of the SDK's", "times")
    return [
        *Group("Independent one-shot queries, start included", "per s").figures(rates),
        ratio.figure(POOL, [rates[POOL][0] / rates[SDK][0]], Bound(12.0, least=True)),
    ]


async def seconds_of_burst(delay: float, size: int, count: int) -> tuple[float, int]:
    """Return the seconds for prompts that come at once into a cold pool, and the number of started processes."""

    async def answer(_body: JsonObject) -> str:
        await asyncio.sleep(delay)
        return "Hello."

    async with LoopbackServer(answer) as api:
        options = sealed_options(system_prompt="You are terse.", model="claude-sonnet-5", env=api.env())
        async with SessionPool(options, limits=PoolLimits(size=size, prewarm=0)) as pool:
            begun = time.perf_counter()
            await asyncio.gather(*(pool.run("Hello?") for _ in range(count)))
            return time.perf_counter() - begun, pool.stats().starts


async def measure_burst(effort: Effort) -> list[Figure]:
    count, quick, slow = effort.times(BURST, 4), dict[str, list[float]](), dict[str, list[float]]()
    one, many = "one place", f"{PLACES} places"
    for _ in range(effort.times(3, 1)):
        for name, size in ((one, 1), (many, PLACES)):
            quick.setdefault(name, []).append((await seconds_of_burst(0.0, size, count))[0])
    taken, starts = await seconds_of_burst(SLOW_SECONDS, PLACES, count)
    slow[many] = [taken / (SLOW_SECONDS * count / PLACES)]
    return [
        *Group(f"{count} prompts at once, answered at once", "s").figures(quick, one, {many: Bound(1.5, of="ratio")}),
        *Group(f"{count} prompts at once, answered after 3 s", "times the answers alone").figures(
            slow, bounds={many: Bound(1.3)}
        ),
        Group("Processes for the slow answers", "").figure(many, [starts], Bound(PLACES, least=True)),
    ]


async def measure_turns(effort: Effort) -> list[Figure]:
    async with LoopbackServer(lambda _body: "Hello.") as api:
        options = sealed_options(system_prompt="You are terse.", model="claude-sonnet-5", env=api.env())
        figures = await compare_turns("Warm turn with events", options, effort)
        options.include_partial_messages = False
        return [*figures, *await compare_turns("Warm turn without events", options, effort)]


async def compare_turns(title: str, options: ClaudeAgentOptions, effort: Effort) -> list[Figure]:
    times: dict[str, list[float]] = {}  # by its type, the client may suppress an error
    async with ClaudeSDKClient(options) as client, await Session.open(options) as session:

        async def bare() -> None:
            await client.query("Hello?")
            async for message in client.receive_response():
                if isinstance(message, ResultMessage) and message.result != "Hello.":
                    raise RuntimeError(f"not the answer: {message}")

        async def ours() -> None:
            if (await session.run("Hello?")).text != "Hello.":
                raise RuntimeError("not the answer")

        times = await alternated({BARE: bare, SESSION: ours}, effort.times(TURNS, 4), effort.times(WARM_UP))
    return Group(title).figures(times, BARE, {SESSION: Bound(1.3, of="ratio")})


async def measure_pool(effort: Effort) -> list[Figure]:
    async with scripted_api() as env:
        options = sealed_options(system_prompt="You are terse.", model="claude-sonnet-5", env=env)
        return [*await measure_lease(options, effort), *await measure_queries(options, effort)]


SUITES = (
    Suite("session_turn", "A warm turn in a session and in the SDK's client", measure_turns),
    Suite("session_burst", "A burst of prompts for a cold pool", measure_burst),
    Suite("session_pool", "A pool of sessions beside the SDK's query()", measure_pool),
)
