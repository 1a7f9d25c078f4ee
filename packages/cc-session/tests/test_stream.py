"""Reading a turn while it runs, and leaving it at any moment."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from claude_agent_sdk import ResultMessage, StreamEvent

from cc_loopback import LoopbackServer
from cc_session import Session, Timeouts, TurnError, TurnTimeoutError
from cc_types import CLIConnectionError

from .conftest import FakeCLI, folders_in, say, until

WORDS = " ".join(f"word{number}" for number in range(500))


def text_of(messages: list[Any]) -> str:
    events = [message.event for message in messages if isinstance(message, StreamEvent)]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    return "".join(delta["text"] for delta in deltas)


async def answers(server: LoopbackServer, session: Session) -> bool:
    """Return true if the session gives the next prompt the right answer."""
    text = f"Answer {time.monotonic()}"
    server.respond = say(text)
    return (await session.run("Now?")).text == text


async def test_messages_arrive_as_sent_and_the_turn_at_the_end(server: LoopbackServer, session: Session) -> None:
    """SES-13, SES-15."""
    server.respond = say(WORDS)

    async with session.stream("Talk.") as stream:
        with pytest.raises(RuntimeError, match="not read to its result"):
            _ = stream.turn
        messages = [message async for message in stream]

    assert text_of(messages) == WORDS
    assert isinstance(messages[-1], ResultMessage)
    assert stream.turn.messages == tuple(messages)
    assert stream.turn.text == WORDS
    assert session.state == "idle"
    assert [message async for message in stream] == []


async def test_a_failed_turn_raises_after_the_result_if_read_on(server: LoopbackServer, session: Session) -> None:
    """SES-01: `run()` is a stream that is read to the end."""
    server.fail_next(status=529)
    messages: list[Any] = []
    stream = session.stream("Hello?")

    with pytest.raises(TurnError) as raised:
        async with stream:
            async for message in stream:
                messages.append(message)  # noqa: PERF401  # messages before the error count

    assert raised.value.kind == "overloaded"
    assert raised.value.turn == stream.turn
    assert isinstance(messages[-1], ResultMessage)
    assert session.state == "idle"
    assert await answers(server, session)

    server.fail_next(status=529)
    async with session.stream("Hello?") as stream:
        async for message in stream:
            if isinstance(message, ResultMessage):
                break

    assert stream.turn.result.is_error
    assert session.state == "idle"


async def test_leaving_early_interrupts_the_turn(server: LoopbackServer, own_session: Session, slow_api: Any) -> None:
    """SES-14, SES-10."""
    with anyio.fail_after(20):
        for messages in (3, 1, 0):  # a process sends more in the first turn
            server.respond = slow_api
            async with own_session.stream("Take your time.") as stream:
                for _ in range(messages):
                    await anext(stream)
            assert own_session.state == "idle"
            assert await answers(server, own_session)

        server.respond = slow_api
        with pytest.raises(ZeroDivisionError):
            async with own_session.stream("Take your time."):
                raise ZeroDivisionError
        assert own_session.state == "idle"
        assert await answers(server, own_session)


async def test_a_cancel_scope_ends_a_stream(server: LoopbackServer, session: Session, slow_api: Any) -> None:
    """SES-14, SES-75: in which each await is cancelled again."""
    with anyio.move_on_after(0.2) as scope:
        async with session.stream("Take your time.") as stream:
            async for _ in stream:
                pass

    assert scope.cancelled_caught
    with anyio.fail_after(10):
        assert await answers(server, session)


STUBBORN = """
initialize()
for frame in frames():
    if frame["type"] == "control_request":
        answer(frame, response={})  # and goes on with the turn all the same
"""


async def test_a_turn_that_does_not_end_takes_its_process_with_it(
    fake_cli: FakeCLI, children: Callable[[], list[psutil.Process]], temporary: Path
) -> None:
    """SES-14: and the caller waits for the close timeout only."""
    timeouts = Timeouts(close=0.4)
    session = await Session.open(fake_cli(STUBBORN), timeouts=timeouts)
    began = time.monotonic()
    async with session.stream("Hello?"):
        pass

    assert timeouts.close <= time.monotonic() - began < 10
    assert session.state == "dead"
    assert isinstance(session.death, CLIConnectionError)
    with pytest.raises(CLIConnectionError, match="did not end in time"):
        await session.run("Hello?")
    await until(lambda: not children() and not folders_in(temporary))  # no caller closes it, and it ends all the same


async def test_a_stream_that_was_not_entered_says_so(server: LoopbackServer, session: Session) -> None:
    """SES-13."""
    with anyio.fail_after(5), pytest.raises(RuntimeError, match="async with"):
        await anext(session.stream("Hello."))
    assert await answers(server, session)


async def test_a_stream_has_the_limits_of_a_run(server: LoopbackServer, session: Session, slow_api: Any) -> None:
    """SES-34: also without a reader."""
    with anyio.fail_after(10), pytest.raises(TurnTimeoutError) as raised:
        async with session.stream("Take your time.", timeout=0.3) as stream:
            await anyio.sleep(0.6)
            async for _ in stream:
                pass
    assert (raised.value.limit, raised.value.seconds) == ("turn", 0.3)
    assert await answers(server, session)


@pytest.mark.worlds
async def test_a_stream_may_be_left_in_the_middle_of_a_tool(
    server: LoopbackServer, bash_session: Session, calls_bash: Callable[..., None]
) -> None:
    """SES-14."""
    calls_bash("sleep 600")
    with anyio.fail_after(20):
        async with bash_session.stream("Go.") as stream:
            async for message in stream:
                if getattr(message, "content", None) and "sleep 600" in str(message):
                    break
    assert bash_session.state == "idle"
    assert await answers(server, bash_session)
