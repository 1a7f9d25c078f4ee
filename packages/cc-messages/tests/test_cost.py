"""A request's cost comes from the API's usage and the list prices, not from the CLI's figures."""

from typing import Any

import pytest
from claude_agent_sdk import ResultMessage
from hypothesis import given
from hypothesis import strategies as st

from cc_convert.log_files.fields import MOST
from cc_messages import request_context
from cc_messages.api.cost import cost_of, usages_of, with_cost
from warm_clients.client import Client

RESULT = ResultMessage(
    subtype="success",
    duration_ms=1,
    duration_api_ms=1,
    is_error=False,
    num_turns=1,
    session_id="s",
    total_cost_usd=99.0,
)
USAGE = {"input_tokens": 1_000_000, "output_tokens": 0}


def test_the_price_is_that_of_the_model_that_has_answered() -> None:
    """MSG-77"""
    cheap, dear = (
        with_cost(RESULT, {"id": "msg_1", "model": model, "usage": USAGE})
        for model in ("claude-haiku-4-5", "claude-opus-4-5")
    )
    assert 0 < (cheap.total_cost_usd or 0) < (dear.total_cost_usd or 0) < 99
    assert cheap.model_usage is not None
    assert [*cheap.model_usage] == ["claude-haiku-4-5"]
    assert cheap.model_usage["claude-haiku-4-5"]["costUSD"] == pytest.approx(cheap.total_cost_usd)


def hop(kind: str, model: str, output: int) -> dict[str, Any]:
    return {"type": kind, "model": model, "input_tokens": 1000, "output_tokens": output}


@pytest.mark.parametrize("output", [0, 10])
def test_a_model_that_declined_costs_its_own_price_after_some_output(output: int) -> None:
    """MSG-77, MSG-140"""
    iterations = [hop("message", "claude-opus-4-5", output), hop("fallback_message", "claude-haiku-4-5", 20)]
    usage = {"input_tokens": 1000, "output_tokens": 20}
    alone = with_cost(RESULT, {"id": "msg_1", "model": "claude-haiku-4-5", "usage": usage})
    result = with_cost(
        RESULT, {"id": "msg_1", "model": "claude-opus-4-5", "usage": {**usage, "iterations": iterations}}
    )
    assert result.usage == {"iterations": iterations}
    assert result.model_usage is not None and result.total_cost_usd is not None
    declined = (1000 * 5 + output * 25) / 1e6 if output else 0
    assert result.total_cost_usd == pytest.approx((alone.total_cost_usd or 0) + declined)
    assert {model: fields["outputTokens"] for model, fields in result.model_usage.items()} == {
        "claude-haiku-4-5": 20,
        **({"claude-opus-4-5": output} if output else {}),
    }


def test_a_request_without_an_answer_costs_nothing() -> None:
    """MSG-77"""
    assert (with_cost(RESULT, {}).total_cost_usd, with_cost(RESULT, {}).model_usage) == (0.0, {})


async def test_usage_is_told_before_the_event_that_states_it(client: Client) -> None:
    """MSG-108: a callback that raises does not harm the answer."""
    client.answers(lambda _: {"content": "Fine.", "usage": {"input_tokens": 60, "output_tokens": 40}})
    messages: list[Any] = []

    def listen(message: Any) -> None:
        messages.append(message)
        raise RuntimeError("made-up")

    with request_context(on_usage=listen):
        async with client.stream("Hello.") as response:
            async for chunk in response.aiter_text():
                if "event: message_start" in chunk:
                    assert messages[0]["usage"]["input_tokens"] == 60
                if "event: message_delta" in chunk:
                    assert messages[1]["usage"]["output_tokens"] == 40
        whole = await client.ask("Hello.")
    assert whole.text == "Fine."
    assert [message["usage"]["output_tokens"] for message in messages[1::2]] == [40, 40]
    assert messages[1]["model"] == client.body()["model"] and not messages[1]["content"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda values: st.lists(values, max_size=2) | st.dictionaries(st.text(max_size=3), values, max_size=2),
    max_leaves=4,
)
_NAMES = (
    "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation", "iterations", "speed",
    "server_tool_use", "output_tokens_details",
)  # fmt: skip
_ODD = _JSON | st.sampled_from([2**53, 2**63, 10**400, -(10**9), "9", 1.5])


@given(usage=st.dictionaries(st.sampled_from(_NAMES), _ODD), model=_JSON, identity=_JSON)
def test_counts_of_any_form_are_bounded_and_one_bad_field_leaves_the_others(
    usage: dict[str, Any], model: Any, identity: Any
) -> None:
    """MSG-186"""
    message = {"id": identity, "model": model, "usage": {"output_tokens": 7, **usage}}
    [usage_read, *_] = usages = usages_of(message)
    assert usage_read.amounts.output == 7
    assert all(type(number) is int and 0 <= number <= MOST for number in usage_read.counts)
    cost_of(usages)


@pytest.mark.parametrize("usage", [None, 3, "usage", [], True])
def test_a_usage_that_is_no_object_counts_nothing(usage: Any) -> None:
    """MSG-186"""
    assert usages_of({"id": "msg_1", "model": "claude-haiku-4-5", "usage": usage}) == []
