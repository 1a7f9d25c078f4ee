"""Refusals that another model answers, with the API's `fallbacks`: the block, its way back, usage and cost.

The scenarios with a pydantic-ai agent are in `scenarios/responses.py`.
"""

from typing import Any

import pytest
from anthropic import Anthropic
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModelSettings

from api_script import hop, steps, text, thought, usage_of_fallback
from both_ways import comparable
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from messages_server import MessagesServer

DECLINING, ANSWERING = "claude-opus-5-5", "claude-opus-5"
BETA = "server-side-fallback-2026-07-01"
FALLBACKS = [{"model": ANSWERING}]
USAGE = usage_of_fallback(DECLINING, ANSWERING)
CONTENTS = {
    "before the answer": [hop(DECLINING, ANSWERING), thought("Hm."), text("Gladly.")],
    "in mid-answer": [thought("A."), text("I"), hop(DECLINING, ANSWERING), thought("B."), text("can.")],
    "twice": [text("I"), hop(DECLINING, "claude-opus-4-8"), text("could"), hop("claude-opus-4-8", ANSWERING)],
}


def asked(client: Anthropic, messages: list[Any], *, is_streamed: bool) -> dict[str, Any]:
    request: Any = {"model": DECLINING, "max_tokens": 99, "messages": messages, "fallbacks": FALLBACKS, "betas": [BETA]}
    beta: Any = client.beta
    if not is_streamed:
        return beta.messages.create(**request).to_dict()
    with beta.messages.stream(**request) as stream:
        return stream.get_final_message().to_dict()


def without_category(blocks: list[Any]) -> list[Any]:
    return [{**block, "trigger": {"type": "refusal"}} if block["type"] == "fallback" else block for block in blocks]


@pytest.mark.worlds
@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("place", CONTENTS)
def test_a_fallback_block_comes_back_in_its_place(
    place: str, is_streamed: bool, messages_server: MessagesServer, loopback: LoopbackServer
) -> None:
    """MSG-140: as with the API itself, except for the trigger's category, which Claude Code does not report."""
    answer = {"model": ANSWERING, "content": CONTENTS[place], "usage": USAGE}
    loopback.respond = steps(answer, "Bye.")
    answers: list[dict[str, Any]] = []
    with (
        Anthropic(base_url=loopback.url, api_key="key", max_retries=0) as direct,
        Anthropic(base_url=messages_server.url, api_key=messages_server.token, max_retries=0) as through,
    ):
        for client in (direct, through):
            first = asked(client, [{"role": "user", "content": "Odd."}], is_streamed=is_streamed)
            history = [{"role": "assistant", "content": first["content"]}, {"role": "user", "content": "Go on."}]
            asked(client, [{"role": "user", "content": "Odd."}, *history], is_streamed=is_streamed)
            answers.append({name: first[name] for name in ("content", "model", "stop_reason", "usage")})
    expected, observed = answers
    assert expected["content"] == CONTENTS[place]
    assert observed == {**expected, "content": without_category(expected["content"])}
    assert observed["usage"]["iterations"] == USAGE["iterations"]

    first_direct, next_direct, first_through, next_through = comparable(loopback.requests)
    assert first_through == first_direct
    assert first_through["fallbacks"] == FALLBACKS
    assert next_through["messages"][1]["content"] == without_category(next_direct["messages"][1]["content"])
    assert [call.headers["anthropic-beta"] for call in loopback.calls] == [BETA] * 4


async def test_the_cli_response_has_each_models_usage_and_cost(
    loopback: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MSG-140"""
    answer: dict[str, Any] = {"model": ANSWERING, "content": CONTENTS["in mid-answer"], "usage": USAGE}
    loopback.respond = steps(answer)
    settings = AnthropicModelSettings(anthropic_betas=[BETA], extra_body={"fallbacks": FALLBACKS})
    prompt: Any = [ModelRequest.user_text_prompt("Something odd.")]
    model = ClaudeCodeModel(DECLINING, provider=provider)
    response, report = await model.request_with_metadata(prompt, settings, ModelRequestParameters())

    assert (response.model_name, response.text) == (DECLINING, "I\n\ncan.")  # the framework keeps the first model
    assert (response.usage.input_tokens, response.usage.output_tokens) == (132, 30)
    assert report.usage.iterations == USAGE["iterations"]
    assert report.model_usage is not None and report.total_cost_usd is not None
    assert {name: usage.output_tokens for name, usage in report.model_usage.items()} == {ANSWERING: 30, DECLINING: 9}
    costs = [usage.cost_usd for usage in report.model_usage.values()]
    assert all(costs)
    assert report.total_cost_usd == pytest.approx(sum(costs))
