"""Turns that are cancelled or interrupted at any moment: no answer is ever given to another prompt."""

import asyncio
import random
import sys
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import JsonObject, LoopbackServer
from cc_session import Session, SessionPool, Timeouts, TurnError
from cc_types import CLIConnectionError

from .conftest import cancelled, echo, process_of, until

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)


async def slow_echo(body: JsonObject) -> str:
    """Answer after a moment, so that there is something to interrupt."""
    await asyncio.sleep(random.random() * 0.03)
    return echo(body)


async def test_a_prompt_after_a_cancelled_one_gets_its_own_answer(
    server: LoopbackServer, session: Session, slow_api: Any
) -> None:
    """SES-10, SES-75."""
    for milliseconds in (0, 1, 2, 3, 5, 10, 20, 100):
        server.respond = slow_api
        running = asyncio.ensure_future(session.run("Never mind."))
        await anyio.sleep(milliseconds / 1000)  # so that the cancel meets the turn at another point
        await cancelled(running)
        assert session.state in ("dirty", "idle")

        server.respond = echo
        with anyio.fail_after(10):
            assert (await session.run("And now?")).text == "And now?"
        assert session.state == "idle"


@pytest.mark.deaths
async def test_a_cancelled_turn_that_does_not_end_ends_the_session(options: ClaudeAgentOptions, slow_api: Any) -> None:
    """SES-10: the next run gets a dead session, in time."""
    async with await Session.open(options, timeouts=Timeouts(close=0.4)) as session:
        running = await slow_api.during(session.run("Never mind."))
        process_of(session).suspend()
        await cancelled(running)

        with anyio.fail_after(10), pytest.raises(CLIConnectionError, match="did not end in time"):
            await session.run("And now?")
        assert session.state == "dead"


async def test_an_interrupt_ends_a_run_at_any_moment(server: LoopbackServer, session: Session, slow_api: Any) -> None:
    """SES-18, SES-72."""
    for milliseconds in (0, 1, 2, 3, 4, 5, 30):
        server.respond = slow_api
        with anyio.fail_after(10):
            running = asyncio.ensure_future(session.run("Take your time."))
            await until(lambda: session.state == "busy", pause=0)
            await anyio.sleep(milliseconds / 1000)  # so that the interrupt meets the turn at another point

            await session.interrupt()
            with pytest.raises(TurnError) as raised:
                await running
            assert (raised.value.kind, raised.value.retryable) == ("interrupted", False)

            server.respond = echo
            assert (await session.run("And now?")).text == "And now?"


@pytest.mark.deaths
async def test_random_cancels_and_interrupts_of_sessions_side_by_side_mix_nothing_up(
    server: LoopbackServer, shared_pool: SessionPool
) -> None:
    """SES-09, SES-10, SES-82: in small; `test_pool_chaos.py` does it with ten thousand callers."""
    server.respond = slow_echo
    wrong: list[str] = []

    async def one(number: int) -> None:
        async with shared_pool.lease() as session:
            for index in range(24):
                prompt = f"{number}-{index}"
                running = asyncio.ensure_future(session.run(prompt))
                await asyncio.wait({running}, timeout=random.random() * 0.05)
                if index % 3 == 0:
                    running.cancel()
                elif index % 3 == 1:
                    await session.interrupt()
                await asyncio.wait({running})
                if not running.cancelled() and running.exception() is None and running.result().text != prompt:
                    wrong.append(prompt)
            assert (await session.run("last")).text == "last"
            assert session.state == "idle"

    with anyio.fail_after(40):
        await asyncio.gather(*map(one, range(2)))
    assert wrong == []
