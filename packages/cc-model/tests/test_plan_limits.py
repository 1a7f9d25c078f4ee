"""Plan limits and request reports: on responses, on spans, in errors."""

import pickle
import time
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, InstrumentationSettings, ModelMessagesTypeAdapter
from pydantic_ai.exceptions import ModelHTTPError, ModelRateLimitError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.instrumented import InstrumentedModel
from pydantic_ai.models.test import TestModel

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, ModelPlanLimitError
from cc_types import RateLimits

PREFIX = "anthropic-ratelimit-unified"
RESETS_AT = int(time.time()) + 7200
# Invented, from public descriptions of the names.
ALLOWED = {
    f"{PREFIX}-status": "allowed",
    f"{PREFIX}-reset": str(RESETS_AT),
    f"{PREFIX}-representative-claim": "five_hour",
    f"{PREFIX}-5h-status": "allowed",
    f"{PREFIX}-5h-reset": str(RESETS_AT),
    f"{PREFIX}-5h-utilization": "0.42",
    f"{PREFIX}-7d-status": "allowed",
    f"{PREFIX}-7d-reset": str(RESETS_AT + 400_000),
    f"{PREFIX}-7d-utilization": "0.3",
}
USED_UP = {
    **ALLOWED,
    f"{PREFIX}-status": "rejected",
    f"{PREFIX}-5h-status": "rejected",
    f"{PREFIX}-5h-utilization": "1.01",
}


class Spans:
    """Traced model, and the attributes on spans for requests."""

    def __init__(self, model: ClaudeCodeModel) -> None:
        tracing = TracerProvider()
        self._exporter = InMemorySpanExporter()
        tracing.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = tracing.get_tracer("test")
        self.model = InstrumentedModel(model, InstrumentationSettings(tracer_provider=tracing))

    def named(self, name: str) -> list[dict[str, object]]:
        spans = self._exporter.get_finished_spans()
        return [dict(span.attributes or {}) for span in spans if span.name.startswith(name)]


async def run_agent(agent: Agent, streamed: bool) -> list[ModelMessage]:
    if not streamed:
        return (await agent.run("Hello.")).all_messages()
    async with agent.run_stream("Hello.") as result:
        await result.get_output()
        return result.all_messages()


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_response_has_the_limits_and_the_report(
    shared_api: LoopbackServer, provider: ClaudeCodeProvider, streamed: bool
) -> None:
    """MODEL-92, MODEL-93: as plain JSON, so that a history can be stored and sent again."""
    agent = Agent(ClaudeCodeModel(provider=provider))
    await agent.run("So that a process is warm.")
    shared_api.fail_next(headers=ALLOWED, delay=0)
    messages = await run_agent(agent, streamed)
    details: dict[str, Any] = cast(ModelResponse, messages[-1]).provider_details or {}
    limits = RateLimits.model_validate(details["rate_limits"])
    assert limits == provider.limits
    assert [(window.kind, window.utilization) for window in limits.windows] == [("five_hour", 0.42), ("seven_day", 0.3)]
    facts = details["claude_code"]
    assert facts.keys() == {"process_started", "process_wait_ms", "queue_length"}
    assert (facts["process_started"], facts["queue_length"]) == (False, 0)
    assert 0 <= facts["process_wait_ms"] < 5000
    assert details["finish_reason"] == "end_turn"
    assert ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages)) == messages


@pytest.mark.parametrize("streamed", [False, pytest.param(True, marks=pytest.mark.worlds)])
async def test_a_used_up_plan_has_its_own_error_with_the_reset(loopback: LoopbackServer, streamed: bool) -> None:
    """MODEL-94: the client does not repeat the request, and `ModelRateLimitError` catches it."""
    async with ClaudeCodeProvider(env=loopback.env(), max_retries=5) as provider:
        loopback.fail_next(429, headers=USED_UP, message="You have reached your limit.")
        with pytest.raises(ModelPlanLimitError, match="five_hour is used up until 20") as caught:
            await run_agent(Agent(ClaudeCodeModel(provider=provider)), streamed)
    error = caught.value
    assert isinstance(error, ModelHTTPError)
    assert isinstance(error, ModelRateLimitError)
    assert (error.status_code, error.resets_at) == (429, datetime.fromtimestamp(RESETS_AT, UTC))
    assert error.retry_after == pytest.approx(RESETS_AT - time.time(), abs=60)  # pyright: ignore[reportUnknownMemberType]
    assert error.limits == provider.limits
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.limits, str(copy)) == (ModelPlanLimitError, error.limits, str(error))
    assert len(loopback.requests) == 1


async def test_a_throttle_is_not_a_plan_limit(shared_api: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-94."""
    shared_api.fail_next(429, headers=ALLOWED)
    with pytest.raises(ModelRateLimitError) as caught:
        await Agent(model).run("Hello.")
    assert not isinstance(caught.value, ModelPlanLimitError)


async def test_another_model_takes_over_when_the_plan_is_used_up(
    shared_api: LoopbackServer, model: ClaudeCodeModel
) -> None:
    """MODEL-94."""
    shared_api.fail_next(429, headers=USED_UP)
    result = await Agent(FallbackModel(model, TestModel(custom_output_text="From elsewhere."))).run("Hello.")
    assert result.output == "From elsewhere."


async def test_the_span_of_a_failed_request_has_the_report(shared_api: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-93."""
    spans = Spans(model)
    shared_api.fail_next(429, headers=USED_UP)
    with pytest.raises(ModelPlanLimitError):
        await Agent(spans.model).run("Hello.")
    [attributes] = spans.named("chat ")
    assert attributes["claude_code.rate_limit.status"] == "rejected"
    assert attributes["claude_code.rate_limit.five_hour.utilization"] == 1.01
    assert attributes["claude_code.process.wait_ms"] is not None
