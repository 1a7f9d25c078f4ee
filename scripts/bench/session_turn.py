"""What a warm turn of a session costs beside a bare turn of the SDK's client (SES-79), measured in the same run.

    python scripts/bench/session_turn.py

Both talk to a live process with the same options over the loopback API, which answers at once. Turns alternate, so that
whatever else the computer does falls on both, and both conversations grow alike.

Prints medians and the median of the ratios of neighbours; exits with 1 if the bound is missed.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

from cc_loopback import LoopbackServer
from cc_session import Session, sealed_options

WARM_UP = 20
TURNS = 400
MOST_TIMES_BARE = 1.3

Measure = Callable[[], Awaitable[float]]


async def main() -> bool:
    """Measure, print, and return whether the bound holds."""
    async with LoopbackServer(lambda _body: "Hello.") as api:
        options = sealed_options(system_prompt="You are terse.", model="claude-sonnet-5", env=api.env())
        kept = True
        for partial in (True, False):
            options.include_partial_messages = partial
            kept &= await compare(options, "with events" if partial else "without events")
    return kept


async def compare(options: ClaudeAgentOptions, name: str) -> bool:
    """Compare both on processes of their own, and return whether the bound holds."""
    client = ClaudeSDKClient(options)
    await client.connect()
    session = await Session.open(options)

    async def bare() -> float:
        began = time.perf_counter()
        await client.query("Hello?")
        async for message in client.receive_response():
            if isinstance(message, ResultMessage) and message.result != "Hello.":
                raise RuntimeError(f"not the answer: {message}")
        return time.perf_counter() - began

    async def ours() -> float:
        began = time.perf_counter()
        if (await session.run("Hello?")).text != "Hello.":
            raise RuntimeError("not the answer")
        return time.perf_counter() - began

    try:
        return report(name, await alternate(bare, ours))
    finally:
        await session.close()
        await client.disconnect()


async def alternate(bare: Measure, ours: Measure) -> list[tuple[float, float]]:
    """Measure pairs, in turn either of them first."""
    pairs: list[tuple[float, float]] = []
    for number in range(WARM_UP + TURNS):
        if number % 2:
            pair = (await bare(), await ours())
        else:
            second = await ours()
            pair = (await bare(), second)
        pairs.append(pair)
    return pairs[WARM_UP:]


def report(name: str, pairs: list[tuple[float, float]]) -> bool:
    """Print the medians and the ratio; return whether it keeps to the bound."""
    bare, ours = (statistics.median(times) * 1000 for times in zip(*pairs, strict=True))
    ratio = statistics.median(mine / theirs for theirs, mine in pairs)
    kept = ratio <= MOST_TIMES_BARE
    print(f"{name}:")
    print(f"  bare turn of the SDK's client   p50 {bare:7.2f} ms")
    print(f"  Session.run                     p50 {ours:7.2f} ms")
    verdict = "" if kept else "   MISSED"
    print(f"  ratio of neighbours             p50 {ratio:7.2f}      at most {MOST_TIMES_BARE}{verdict}")
    return kept


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
