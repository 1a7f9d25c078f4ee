"""Leases: who gets which process, how long one waits, and what wrong use does."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import JsonObject, LoopbackServer
from cc_session import SessionBusyError, SessionPool, TurnError
from cc_types import CLIConnectionError, CLINotFoundError, ControlRequestError

pytestmark = pytest.mark.usefixtures("echo")

Echo = Callable[[JsonObject], str]
Until = Callable[[Callable[[], bool]], Any]


# --- What a lease gets ---


async def test_a_lease_gets_an_empty_conversation_in_a_process_that_runs_already(
    server: LoopbackServer, pool: SessionPool
) -> None:
    """SES-61, SES-62."""
    pids: list[int | None] = []
    for text in ("One.", "Two.", "Three."):
        async with pool.lease() as session:
            pids.append(session.pid)
            assert (await session.run(text)).text == text
            assert (await session.run("And?")).text == "And?"

    assert len({*pids}) == 1
    assert [len(body["messages"]) for body in server.requests] == [1, 3] * 3


async def test_run_asks_in_a_conversation_of_its_own(server: LoopbackServer, pool: SessionPool) -> None:
    for text in ("One.", "Two."):
        turn = await pool.run(text)
        assert turn.text == text
        assert turn.usage.input_tokens > 0
    assert [len(body["messages"]) for body in server.requests] == [1, 1]


async def test_the_process_that_was_used_last_goes_out_first(options: ClaudeAgentOptions, until: Until) -> None:
    """SES-66."""
    async with SessionPool(options, size=3, prewarm=0) as pool:
        await pool.warm(3)
        async with pool.lease() as first, pool.lease() as second:
            pids = [first.pid, second.pid]
            await second.run("Hello.")
        await until(lambda: pool.stats().idle == 3)

        async with pool.lease() as session:
            assert session.pid in pids


async def test_other_options_have_processes_of_their_own(
    server: LoopbackServer, options: ClaudeAgentOptions, tmp_path: Path
) -> None:
    """SES-61."""
    async with SessionPool(options, size=4, prewarm=0) as pool:
        pids = set[int | None]()
        for _ in range(2):
            async with pool.lease() as session:
                pids.add(session.pid)
            async with pool.lease(system_prompt="You are another.") as session:
                pids.add(session.pid)
                await session.run("Hello.")
                assert "You are another." in str(server.requests[-1]["system"])
            async with pool.lease(cwd=tmp_path) as session:
                pids.add(session.pid)
            async with pool.lease(replace(options, cwd=tmp_path)) as session:
                pids.add(session.pid)
            async with pool.lease(env={"COLOUR": "red"}) as session:
                pids.add(session.pid)
        assert len(pids) == 4
        assert pool.stats().starts == 4


async def test_model_and_mode_are_set_on_a_process_that_runs(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-61."""
    for model in ("claude-opus-5-5", "claude-sonnet-5", "claude-opus-5-5"):
        async with pool.lease(model=model, permission_mode="acceptEdits") as session:
            await session.run("Hello.")
            assert server.requests[-1]["model"] == model
    await pool.run("Hello.")
    assert server.requests[-1]["model"] == "claude-sonnet-5"
    assert pool.stats().starts == 1


async def test_a_mode_that_leaves_traces_has_processes_of_its_own(pool: SessionPool) -> None:
    """SES-61."""
    for mode in ("plan", "default", "plan"):
        async with pool.lease(permission_mode=mode):
            pass
    assert pool.stats().recycled == {"evicted": 2}


async def test_options_are_taken_as_they_were_when_the_lease_was_asked_for(
    server: LoopbackServer, pool: SessionPool, options: ClaudeAgentOptions
) -> None:
    mine = replace(options, env={**options.env})
    await pool.run("Hello.", options=mine)
    mine.env["COLOUR"] = "red"
    await pool.run("Hello.", options=mine)
    mine.env.pop("COLOUR")
    async with pool.lease(mine) as session:
        mine.system_prompt = "Too late."
        await session.run("Hello.")
    assert "Too late" not in str(server.requests)
    assert pool.stats().starts == 3


async def test_an_override_that_no_option_has_is_refused(pool: SessionPool) -> None:
    with pytest.raises(TypeError, match="colour"):
        await pool.run("Hello.", **{"colour": "red"})  # pyright: ignore[reportArgumentType] - that is the point


async def test_options_that_resume_something_are_used_once(
    server: LoopbackServer, pool: SessionPool, options: ClaudeAgentOptions, until: Until
) -> None:
    """SES-62: the conversation does not begin empty, or belongs to one session alone."""
    once = replace(options, session_id=str(uuid4()))
    for _ in range(2):
        await pool.run("Hello.", options=once)
    await until(lambda: pool.stats().recycled == {"fresh": 2})


# --- What a lease may do ---


async def test_a_session_can_do_nothing_after_its_lease(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-67."""
    async with pool.lease() as old:
        await old.run("Mine.")
        stream = old.ask("Mine, too.")
        await anext(stream)
    async with pool.lease() as new:
        for call in (old.run("x"), old.add_user("x"), old.reset(), old.control("get_settings"), anext(stream)):
            with pytest.raises(CLIConnectionError, match="The lease of this session has ended"):
                await call
        await old.close()
        assert (old.state, old.pid, old.last_user_uuid, old.suspended) == ("dead", None, None, ())
        assert (await new.run("Yours.")).text == "Yours."
        assert len(server.requests[-1]["messages"]) == 1
    assert pool.stats().starts == 1


async def test_what_goes_on_when_a_lease_ends_is_broken_off(
    server: LoopbackServer, pool: SessionPool, held: Any, echo: Echo
) -> None:
    """SES-67: a message that waits for its turn must not come into the conversation of another lease."""
    async with pool.lease() as session:
        running = asyncio.ensure_future(session.run("Slow."))
        await held.asked()
        running.cancel()
        await asyncio.wait({running})
        others = [asyncio.ensure_future(call) for call in (session.run("Late."), session.add_user("Late."))]
        await asyncio.sleep(0)
    server.respond = echo
    assert (await pool.run("Quick.")).text == "Quick."
    for other in others:
        with pytest.raises((CLIConnectionError, SessionBusyError)):
            await other
    assert "Late." not in str(server.requests[-1])
    assert pool.stats().starts == 1


async def test_a_session_that_is_given_back_in_a_turn_has_forgotten_it(
    server: LoopbackServer, pool: SessionPool, held: Any, echo: Echo
) -> None:
    """SES-10, SES-62."""
    async with pool.lease() as session:
        turn = asyncio.ensure_future(session.run("Slow."))
        await held.asked()
    server.respond = echo

    with anyio.fail_after(10):
        assert (await pool.run("Quick.")).text == "Quick."
        with pytest.raises(CLIConnectionError):
            await turn
    assert server.requests[-1]["messages"][0]["content"][0]["text"] == "Quick."
    assert pool.stats().starts == 1


async def test_a_session_that_its_holder_closes_is_replaced(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-67."""
    async with pool.lease() as session:
        await session.close()
        with pytest.raises(CLIConnectionError, match="The session is closed"):
            await session.run("Hello.")
    assert (await pool.run("Hello.")).text == "Hello."
    assert pool.stats().recycled == {"dead": 1}


async def test_a_failed_turn_leaves_the_process_as_it_was(server: LoopbackServer, pool: SessionPool) -> None:
    """SES-72."""
    server.fail_next(status=500)
    with pytest.raises(TurnError):
        await pool.run("Hello.")
    assert (await pool.run("Hello.")).text == "Hello."
    assert pool.stats().starts == 1


async def test_what_is_raised_in_a_lease_comes_out_of_it(pool: SessionPool, until: Until) -> None:
    with pytest.raises(ZeroDivisionError):
        async with pool.lease():
            raise ZeroDivisionError
    await until(lambda: pool.stats().idle == 1)


# --- Waiting ---


async def test_leases_are_served_in_the_order_in_which_they_came(
    server: LoopbackServer, options: ClaudeAgentOptions, until: Until
) -> None:
    """SES-66: whatever options they have, so that none waits for ever."""
    order: list[str] = []

    async def lease(name: str, system_prompt: str) -> None:
        async with pool.lease(system_prompt=system_prompt):
            order.append(name)

    async with SessionPool(options, size=1, prewarm=0) as pool:
        async with pool.lease():
            waiting: list[asyncio.Task[None]] = []
            for number, prompt in enumerate(["B", "A", "B", "A"]):
                waiting.append(asyncio.ensure_future(lease(f"{prompt}{number}", prompt)))
                await until(lambda: pool.stats().waiting == len(waiting))
            assert order == []
        with anyio.fail_after(20):
            await asyncio.gather(*waiting)
        assert order == ["B0", "A1", "B2", "A3"]
        assert pool.stats().waits == 5


async def test_a_lease_that_waits_can_be_cancelled(server: LoopbackServer, pool: SessionPool, until: Until) -> None:
    async with pool.lease():
        waiting = [asyncio.ensure_future(pool.run(text)) for text in ("One.", "Two.", "Three.")]
        await until(lambda: pool.stats().waiting == 3)
        waiting[1].cancel()
        await asyncio.wait({waiting[1]})
        await until(lambda: pool.stats().waiting == 2)
    assert [(await waiting[index]).text for index in (0, 2)] == ["One.", "Three."]


async def test_a_start_that_nobody_waits_for_any_more_is_not_lost(
    server: LoopbackServer, pool: SessionPool, until: Until
) -> None:
    """SES-24, SES-65."""
    waiting = asyncio.ensure_future(pool.run("Hello."))
    await until(lambda: pool.stats().starting == 1)
    waiting.cancel()
    await until(lambda: pool.stats().idle == 1)
    assert (await pool.run("Hello.")).text == "Hello."
    assert pool.stats().starts == 1


async def test_a_lease_cancelled_at_any_moment_is_given_back(
    server: LoopbackServer, pool: SessionPool, until: Until
) -> None:
    """SES-75."""
    await pool.warm(1)
    for step in range(40):
        task = asyncio.ensure_future(pool.run("Hello."))
        await asyncio.sleep(step / 1000)
        task.cancel()
        await asyncio.wait({task})
    with anyio.fail_after(10):
        assert (await pool.run("Still there?")).text == "Still there?"
    await until(lambda: pool.stats().idle == 1)
    assert pool.stats().waiting == 0


# --- Errors ---


async def test_a_lease_says_why_a_process_cannot_be_started_and_the_next_one_tries_again(
    server: LoopbackServer, pool: SessionPool, tmp_path: Path
) -> None:
    """SES-F01."""
    missing = tmp_path / "no-such-claude"
    for _ in range(2):
        with pytest.raises(CLINotFoundError):
            await pool.run("Hello.", cli_path=missing)
    with pytest.raises(CLINotFoundError):
        await pool.warm(1, cli_path=missing)
    with pytest.raises(CLIConnectionError, match="Working directory"):
        await pool.run("Hello.", cwd=tmp_path / "nowhere")
    assert pool.stats().failed_starts == 4
    assert (await pool.run("Hello.")).text == "Hello."


async def test_spare_processes_that_cannot_be_started_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, until: Until
) -> None:
    """SES-65."""
    async with SessionPool(ClaudeAgentOptions(cli_path=tmp_path / "no-such-claude"), size=3, prewarm=2) as pool:
        await until(lambda: pool.stats().starting == 0)
        await asyncio.sleep(0.1)
        assert pool.stats().failed_starts <= 2  # two were started at once
    assert "A spare Claude Code process could not be started" in caplog.text


async def test_what_the_process_refuses_is_raised(pool: SessionPool) -> None:
    await pool.run("Hello.")
    with pytest.raises(ControlRequestError):
        await pool.run("Hello.", model="")
    assert (await pool.run("Hello.")).text == "Hello."


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"size": 0}, "size is 0"),
        ({"size": 2, "prewarm": 3}, "prewarm is 3"),
        ({"start_limit": 0}, "start_limit is 0"),
        ({"max_uses": 0}, "max_uses is 0"),
        ({"max_rss_mb": -1}, "max_rss_mb is -1"),
        ({"idle_seconds": 0}, "idle_seconds is 0"),
        ({"reset": "sometimes"}, "reset is 'sometimes'"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SessionPool(**limits)
