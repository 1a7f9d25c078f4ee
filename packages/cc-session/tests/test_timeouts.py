"""A session's time limits: for a turn, and for a sign of life."""

import re
import sys
import time
from dataclasses import fields, replace
from typing import Any

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import LoopbackServer
from cc_session import Session, Timeouts, TurnTimeoutError
from cc_types import ClaudeCodeError

from .conftest import process_of, say

pytestmark = pytest.mark.deaths

if sys.platform == "win32":
    raise pytest.skip.Exception("needs POSIX", allow_module_level=True)

FOREVER = {"queue", "turn", "silence", "permission", "question"}


@pytest.mark.parametrize("name", [field.name for field in fields(Timeouts)])
def test_a_time_that_cannot_be_waited_is_refused_at_once(name: str) -> None:
    """SES-34: none at all means no limit where that makes sense."""
    for value in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"'{name}' must be a positive, finite number of seconds"):
            Timeouts(**{name: value})
    wrong: list[Any] = ["1", True] if name in FOREVER else ["1", True, None]
    for value in wrong:
        with pytest.raises(TypeError, match=f"'{name}' must be a number of seconds"):
            Timeouts(**{name: value})


def test_the_times_are_those_that_are_promised() -> None:
    """SES-34."""
    assert Timeouts() == Timeouts(
        connect=30, control=10, turn=None, silence=300, hook=30, permission=None, question=300, close=2
    )


async def test_a_long_or_silent_turn_ends_in_time_and_the_session_continues(
    server: LoopbackServer, options: ClaudeAgentOptions, slow_api: Any
) -> None:
    """SES-34."""
    limits = [("turn", None, 0.5, "within 0.5 seconds"), ("turn", 0.3, 0.3, "within 0.3 seconds")]
    limits.append(("silence", 30, 1.5, "no sign of life within 1.5 seconds"))
    async with await Session.open(options, timeouts=Timeouts(turn=0.5, silence=1.5)) as session:
        for limit, timeout, seconds, words in limits:
            server.respond = slow_api
            began = time.monotonic()
            with pytest.raises(TurnTimeoutError, match=re.escape(words)) as raised:
                await session.run("Take your time.", timeout=timeout)
            assert seconds <= time.monotonic() - began < seconds + 10
            assert (raised.value.limit, raised.value.seconds) == (limit, seconds)
            assert isinstance(raised.value, TimeoutError)
            assert isinstance(raised.value, ClaudeCodeError)
            # The CLI's first message may take longer than the short limits.
            assert raised.value.messages or limit != "silence"

            server.respond = say("Hello.")
            with anyio.fail_after(10):
                assert (await session.run("And now?", timeout=10)).text == "Hello."


async def test_an_answer_that_comes_slowly_is_no_silence(options: ClaudeAgentOptions) -> None:
    """SES-34: each part is a sign of life."""
    words = " ".join(["word"] * 20)
    async with LoopbackServer(lambda _: words, event_delay=0.1) as slow:
        options = replace(options, env={**options.env, **slow.env()})
        async with await Session.open(options, timeouts=Timeouts(silence=1.5)) as session:
            began = time.monotonic()
            assert (await session.run("Talk.")).text == words
            assert time.monotonic() - began > 1.7


async def test_a_control_request_has_a_time_of_its_own(session: Session) -> None:
    """SES-29."""
    process_of(session).suspend()
    try:
        began = time.monotonic()
        with pytest.raises(TimeoutError, match=r"'get_settings' within 0\.3 seconds"):
            await session.control("get_settings", timeout=0.3)
        assert time.monotonic() - began < 10
        with pytest.raises(ValueError, match="must be a positive"):
            await session.control("get_settings", timeout=0)
    finally:
        process_of(session).resume()
