"""How long a session waits: for a turn, and for a sign of life."""

import asyncio
import os
import pickle
import signal
import time
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from cc_loopback import JsonObject, LoopbackServer
from cc_session import Session, Timeouts, ToolDefinition, TurnTimeoutError
from cc_types import ClaudeCodeError

FOREVER = {"turn", "silence", "permission"}


def hello(_body: JsonObject) -> str:
    return "Hello."


@pytest.mark.parametrize("name", [field.name for field in fields(Timeouts)])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_time_that_cannot_be_waited_is_refused_at_once(name: str, value: float) -> None:
    """SES-34."""
    with pytest.raises(ValueError, match=f"'{name}' must be a positive, finite number of seconds"):
        Timeouts(**{name: value})


@pytest.mark.parametrize("name", [field.name for field in fields(Timeouts)])
def test_what_is_no_time_is_refused_at_once(name: str) -> None:
    """SES-34: none at all stands for no limit where that makes sense."""
    wrong: list[Any] = ["1", True] if name in FOREVER else ["1", True, None]
    for value in wrong:
        with pytest.raises(TypeError, match=f"'{name}' must be a number of seconds"):
            Timeouts(**{name: value})


def test_the_times_are_those_that_are_promised() -> None:
    """SES-34."""
    assert Timeouts() == Timeouts(connect=30, control=10, turn=None, silence=300, hook=30, permission=None, close=2)


async def test_a_turn_that_takes_too_long_is_left_on_time_and_the_session_goes_on(
    server: LoopbackServer, options: ClaudeAgentOptions, held: Any
) -> None:
    """SES-34."""
    async with await Session.open(options, timeouts=Timeouts(turn=0.5)) as session:
        for timeout in (None, 0.3):
            server.respond = held
            seconds = timeout or 0.5
            began = time.monotonic()
            with pytest.raises(TurnTimeoutError, match=f"within {seconds:g} seconds") as raised:
                await session.run("Take your time.", timeout=timeout)
            assert seconds <= time.monotonic() - began < seconds + 3
            assert (raised.value.limit, raised.value.seconds) == ("turn", seconds)
            assert isinstance(raised.value, TimeoutError)
            assert isinstance(raised.value, ClaudeCodeError)
            assert raised.value.messages

            server.respond = hello
            with anyio.fail_after(10):
                assert (await session.run("And now?", timeout=10)).text == "Hello."


async def test_a_stopped_process_is_a_timeout_on_time_and_is_closed_in_time(
    options: ClaudeAgentOptions, held: Any
) -> None:
    """SES-23, SES-F05: and discarded by itself."""
    session = await Session.open(options, timeouts=Timeouts(turn=0.5, close=1))
    running = asyncio.ensure_future(session.run("Hello?"))
    await held.asked()
    os.kill(session.pid or 0, signal.SIGSTOP)

    with anyio.fail_after(5), pytest.raises(TurnTimeoutError):
        await running
    with anyio.fail_after(5):
        await session.close()
    assert session.state == "dead"


async def test_silence_of_the_api_is_a_timeout_on_time(
    server: LoopbackServer, options: ClaudeAgentOptions, held: Any
) -> None:
    """SES-34."""
    async with await Session.open(options, timeouts=Timeouts(silence=0.5)) as session:
        began = time.monotonic()
        with pytest.raises(TurnTimeoutError, match=r"no sign of life within 0\.5 seconds") as raised:
            await session.run("Hello?")
        assert raised.value.limit == "silence"
        assert 0.5 <= time.monotonic() - began < 5

        server.respond = hello
        assert (await session.run("And now?")).text == "Hello."


async def test_an_answer_that_comes_slowly_is_no_silence(options: ClaudeAgentOptions) -> None:
    """SES-34: each part of it is a sign of life."""
    words = " ".join(["word"] * 40)
    async with LoopbackServer(lambda _: words, event_delay=0.2) as slow:
        options = replace(options, env={**options.env, **slow.env()})
        async with await Session.open(options, timeouts=Timeouts(silence=0.8)) as session:
            began = time.monotonic()
            assert (await session.run("Talk.")).text == words
            assert time.monotonic() - began > 0.9


async def test_a_tool_may_be_silent(options: ClaudeAgentOptions, calls_bash: Callable[..., None]) -> None:
    """SES-34: it is not the API that takes its time."""
    calls_bash("sleep 1.5")
    options = replace(options, tools=["Bash"], allowed_tools=["Bash"], max_turns=None)
    async with await Session.open(options, timeouts=Timeouts(silence=0.7)) as session:
        assert (await session.run("Go.")).text == "Done."


async def test_a_hook_and_a_permission_may_be_silent(
    options: ClaudeAgentOptions, calls_bash: Callable[..., None]
) -> None:
    """SES-34: the CLI waits for us."""
    calls_bash("echo one")

    async def consider(*_: Any) -> Any:
        await asyncio.sleep(1.2)
        return {}

    async def allow(*_: Any) -> Any:
        from claude_agent_sdk import PermissionResultAllow

        await asyncio.sleep(1.2)
        return PermissionResultAllow()

    options = replace(
        options,
        tools=["Bash"],
        max_turns=None,
        permission_mode="default",
        can_use_tool=allow,
        hooks={"UserPromptSubmit": [HookMatcher(hooks=[consider], timeout=10)]},
        extra_args={"no-session-persistence": None},  # bare mode has no hooks
    )
    async with await Session.open(options, timeouts=Timeouts(silence=0.7)) as session:
        assert (await session.run("Go.")).text == "Done."


async def test_a_call_that_waits_for_its_caller_may_be_silent(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-34, SES-16."""

    def model(body: JsonObject) -> Any:
        has_result = "tool_result" in str(body["messages"][-1])
        return "Done." if has_result else [{"type": "tool_use", "id": "toolu_1", "name": "ask", "input": {}}]

    server.respond = model
    tools = [ToolDefinition("ask", "Asks somebody.", {"type": "object"})]
    async with await Session.open(options, tools=tools, timeouts=Timeouts(silence=0.7)) as session:
        running = asyncio.ensure_future(session.run("Go."))
        call = await session.next_call()
        await asyncio.sleep(1.2)
        await session.answer_call(call.id, "Answer.")
        assert (await running).text == "Done."


async def test_a_control_request_has_a_time_of_its_own(session: Session) -> None:
    """SES-29."""
    os.kill(session.pid or 0, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with pytest.raises(TimeoutError, match=r"'get_settings' within 0\.3 seconds"):
            await session.control("get_settings", timeout=0.3)
        assert time.monotonic() - began < 3
        with pytest.raises(ValueError, match="must be a positive"):
            await session.control("get_settings", timeout=0)
    finally:
        os.kill(session.pid or 0, signal.SIGCONT)


def test_a_timeout_survives_pickling() -> None:
    """SES-71."""
    error = TurnTimeoutError(limit="silence", seconds=3.0)

    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), vars(copy)) == (TurnTimeoutError, str(error), vars(error))
    assert error.retryable
