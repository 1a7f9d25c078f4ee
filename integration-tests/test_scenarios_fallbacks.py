"""Usage and cost of a refusal that another model answers, with the API's `fallbacks`.

The scenarios with a pydantic-ai agent are in `scenarios/responses.py`.
"""

from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModelSettings

from api_script import hop, steps, text, thought, usage_of_fallback
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

DECLINING, ANSWERING = "claude-opus-5-5", "claude-opus-5"
BETA = "server-side-fallback-2026-07-01"
FALLBACKS = [{"model": ANSWERING}]
USAGE = usage_of_fallback(DECLINING, ANSWERING)
CONTENT = [thought("A."), text("I"), hop(DECLINING, ANSWERING), thought("B."), text("can.")]


async def test_the_cli_response_has_each_models_usage_and_cost(
    loopback: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MSG-140"""
    answer: dict[str, Any] = {"model": ANSWERING, "content": CONTENT, "usage": USAGE}
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
