"""A pool with callers that cancel, and processes that are killed: each gets the right answer, or none.

`CC_SESSION_CHAOS` is the number of callers; `scripts/README.md` has a run with many.
"""

import asyncio
import contextlib
import os
import random

import psutil
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import JsonObject, LoopbackServer
from cc_session import PoolLimits, SessionPool, Timeouts, TurnError
from cc_types import ClaudeCodeError

CALLERS = int(os.environ.get("CC_SESSION_CHAOS", "50"))
MORE_CALLERS = 150
AT_ONCE = 8
CALLS_PER_KILL = 12


async def echo_sooner_or_later(body: JsonObject) -> str:
    await asyncio.sleep(random.choice([0, 0, 0.01, 0.05]))
    assert len(body["messages"]) == 1, "a conversation that was not empty"
    return body["messages"][0]["content"][0]["text"]


class Chaos:
    """Callers: some cancel, and some kill a process."""

    def __init__(self, pool: SessionPool) -> None:
        self.pool = pool
        self.answered = 0
        self.cancelled = 0
        self.interrupted = 0
        self.failed = 0
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def call(self, number: int) -> None:
        async with self._slots:
            task = asyncio.ensure_future(self._run(f"Prompt {number}."))
            if random.random() < 0.6:
                await asyncio.wait({task}, timeout=random.uniform(0, 0.12))
                task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                self.cancelled += 1
        if number % CALLS_PER_KILL == 0:
            self._kill_one()

    async def _run(self, prompt: str) -> None:
        try:
            if random.random() < 0.5:
                turn = await self.pool.run(prompt)
            else:
                async with self.pool.lease() as session, asyncio.TaskGroup() as tasks:
                    asking = tasks.create_task(session.run(prompt))
                    if random.random() < 0.3:
                        await asyncio.sleep(random.uniform(0, 0.02))
                        await session.interrupt()
                    turn = await asking
        except* TurnError as errors:
            assert {error.kind for error in errors.exceptions if isinstance(error, TurnError)} == {"interrupted"}
            self.interrupted += 1
        except* ClaudeCodeError:
            self.failed += 1  # the process was killed
        else:
            assert turn.text == prompt
            self.answered += 1

    def _kill_one(self) -> None:
        children = psutil.Process().children()
        random.shuffle(children)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.name() != "sh":  # no guard
                    child.kill()
                    return


@pytest.mark.slow
@pytest.mark.timeout(60 + max(CALLERS, MORE_CALLERS))
@pytest.mark.parametrize("callers", [CALLERS, MORE_CALLERS])
async def test_cancels_interrupts_and_kills_mix_up_no_answers_and_leave_nothing(
    server: LoopbackServer, options: ClaudeAgentOptions, callers: int
) -> None:
    """SES-82, SES-10: at eight calls at once on four processes."""
    server.respond = echo_sooner_or_later
    async with SessionPool(options, limits=PoolLimits(size=4, prewarm=1), timeouts=Timeouts(control=5)) as pool:
        await pool.warm(4)
        chaos = Chaos(pool)
        await asyncio.gather(*(chaos.call(number) for number in range(callers)))
        assert chaos.answered + chaos.cancelled + chaos.interrupted + chaos.failed == callers
        assert min(chaos.answered, chaos.cancelled) > 0
        # Abandoned processes return by themselves, and the pool is as good as new. A process that was killed a moment
        # ago may be leased once more before the pool knows the end: hence the retry.
        turns = await asyncio.gather(*(pool.run(f"Afterwards {number}.", retries=1) for number in range(8)))
        assert [turn.text for turn in turns] == [f"Afterwards {number}." for number in range(8)]
        stats = pool.stats()
        assert (stats.waiting, stats.running + stats.starting <= 4) == (0, True)
