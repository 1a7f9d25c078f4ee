"""Failed turns: each has a kind and the whole turn, and the session continues."""

import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import claude_agent_sdk
import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_loopback import LoopbackServer
from cc_session import Session, TurnError, sealed_options
from cc_types import ClaudeCodeError

from .conftest import say

CallsBash = Callable[..., None]


async def failed(session: Session, *, max_cost_usd: float | None = None) -> TurnError:
    with pytest.raises(TurnError) as raised:
        await session.run("Hello?", max_cost_usd=max_cost_usd)
    return raised.value


async def goes_on(server: LoopbackServer, session: Session) -> bool:
    server.respond = say("Yes.")
    return (await session.run("Still there?")).text == "Yes."


TOO_LONG = "prompt is too long: 250000 tokens > 200000 maximum"
API_ERRORS: list[tuple[dict[str, Any], int | None, str, bool]] = [
    ({"status": 400}, 400, "invalid_request", False),
    ({"status": 400, "message": TOO_LONG}, 400, "too_long", False),
    ({"status": 401}, 401, "auth", False),
    ({"status": 402}, 402, "auth", False),
    ({"status": 403}, 403, "auth", False),
    ({"status": 408}, 408, "server", True),
    ({"status": 413}, 413, "too_long", False),
    ({"status": 429}, 429, "rate_limit", True),
    ({"status": 500}, 500, "server", True),
    ({"status": 529}, 529, "overloaded", True),
    ({"after_events": 3}, None, "server", True),  # the connection is lost
]


@pytest.mark.worlds
async def test_an_exhausted_plan_names_the_reset_and_the_turn_has_limits(
    server: LoopbackServer,
) -> None:
    """SES-90."""
    prefix, resets_at = "anthropic-ratelimit-unified", int(time.time()) + 7200
    windows = {
        f"{prefix}-representative-claim": "five_hour",
        f"{prefix}-reset": str(resets_at),
        f"{prefix}-5h-reset": str(resets_at),
        f"{prefix}-5h-utilization": "0.42",
    }
    server.fail_next(headers={**windows, f"{prefix}-status": "allowed"}, delay=0)
    async with await Session.open(sealed_options(env=server.env("oauth"))) as session:
        limits = (await session.run("Hello.")).rate_limits
        assert limits is not None
        assert [(one.kind, one.utilization) for one in limits.windows] == [("five_hour", 0.42)]
        assert (await session.run("Nothing has changed.")).rate_limits is None
        server.fail_next(429, headers={**windows, f"{prefix}-status": "rejected"})
        error = await failed(session)
    assert error.turn.rate_limits is not None
    assert error.turn.rate_limits.exhausted_until == datetime.fromtimestamp(resets_at, UTC)
    assert f"used up until {datetime.fromtimestamp(resets_at, UTC):%Y-%m-%d %H:%M} UTC" in str(error)


@pytest.mark.parametrize(("fault", "status", "kind", "is_retryable"), API_ERRORS)
async def test_an_api_error_has_a_kind_and_the_session_continues(
    server: LoopbackServer, session: Session, fault: Any, status: int | None, kind: str, is_retryable: bool
) -> None:
    """SES-01, SES-69, SES-71, SES-72: the result's subtype is "success"."""
    server.fail_next(**fault)

    error = await failed(session)

    assert (error.kind, error.status, error.retryable) == (kind, status, is_retryable)
    assert (error.subtype, error.api_error_status) == ("success", status)
    assert isinstance(error, ClaudeCodeError)
    assert isinstance(error, claude_agent_sdk.ResultError)
    label = kind if status is None else f"{kind}, HTTP status {status}"
    assert str(error).startswith(f"The turn failed ({label}): ")
    assert error.turn.result.is_error
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (TurnError, str(error), vars(error))
    assert repr(error).startswith(f"TurnError(kind='{kind}', status={status}, message=")
    assert await goes_on(server, session)


STOP_REASONS = [("refusal", "refusal"), ("max_tokens", "max_tokens"), ("model_context_window_exceeded", "too_long")]


@pytest.mark.parametrize(("reason", "kind"), STOP_REASONS)
async def test_an_answer_that_the_model_does_not_finish(
    server: LoopbackServer, session: Session, reason: str, kind: str
) -> None:
    """SES-72."""
    server.respond = say({"content": [{"type": "text", "text": "Part"}], "stop_reason": reason})

    assert (await failed(session)).kind == kind
    assert await goes_on(server, session)


async def test_without_a_login_the_turn_says_so(server: LoopbackServer) -> None:
    """SES-01, SES-72."""
    env = server.env() | {"ANTHROPIC_API_KEY": ""}
    async with await Session.open(sealed_options(env=env)) as session:
        error = await failed(session)

    assert (error.kind, error.status) == ("auth", None)
    assert "login" in str(error)


@pytest.mark.worlds
async def test_too_many_turns(server: LoopbackServer, options: ClaudeAgentOptions, calls_bash: CallsBash) -> None:
    """SES-72: the text is not lost."""
    calls_bash("echo one")
    options = replace(options, tools=["Bash"], allowed_tools=["Bash"], max_turns=1)
    async with await Session.open(options) as session:
        error = await failed(session)
        assert (error.kind, error.retryable, error.turn.text) == ("max_turns", False, "I shall call a tool.")
        assert await goes_on(server, session)


PRICE = {"usage": {"input_tokens": 1000, "output_tokens": 100}}  # for an answer: 0.003 US dollars


async def test_a_turn_ends_at_its_budget_and_the_next_has_another(
    server: LoopbackServer, bash_session: Session, calls_bash: CallsBash
) -> None:
    """SES-05, SES-12, SES-72: tokens are counted from the messages, since the CLI's result has 0."""
    calls_bash("sleep 60", **PRICE)
    for text in ("I shall call a tool.", "Done."):  # the CLI tells the model with the next prompt that it was cut off
        error = await failed(bash_session, max_cost_usd=0.002)
        assert error.kind == "budget"
        assert error.turn.cost_usd == pytest.approx(0.003)
        usage = error.turn.usage
        assert (usage.input_tokens, usage.output_tokens, error.turn.text) == (1000, 100, text)
    assert len(server.requests) == 2  # the tool was interrupted, and no API call came after it
    calls_bash("echo one", **PRICE)
    assert (await bash_session.run("Once more.", max_cost_usd=0.01)).text == "Done."
    assert await goes_on(server, bash_session)


@pytest.mark.worlds
async def test_an_answer_over_budget_is_an_error_with_the_answer(
    server: LoopbackServer, options: ClaudeAgentOptions
) -> None:
    """SES-12: the CLI's budget would block all later turns."""
    server.respond = say({"content": [{"type": "text", "text": "Gold."}], **PRICE})
    async with await Session.open(replace(options, max_budget_usd=0.001)) as session:
        for limit in (None, 0.002):
            error = await failed(session, max_cost_usd=limit)
            assert (error.kind, error.turn.text) == ("budget", "Gold.")
        assert (await session.run("Again?", max_cost_usd=1)).text == "Gold."
        assert await goes_on(server, session)
