"""The model within other models, without an agent, and in other threads; and traces."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, ConcurrencyLimitedModel, InstrumentationSettings
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import CompletedStreamedResponse, ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentedModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.tools import ToolDefinition

from api_script import Body, Reply, call, echo, steps, stopped, text, thought

from .scenario import HAIKU, SONNET, Theme
from .tools import lucky_number

wrappers = Theme("wrappers")

A_NUMBER = steps([call("lucky_number", low=1, high=3)], "Two.")
# Times, places and names that differ between both ways.
_OF_THE_WAY = (
    "server.",
    "claude_code.",
    "gen_ai.provider.name",
    "gen_ai.system",
    "gen_ai.agent.call.id",
    "gen_ai.conversation.id",
)


@wrappers.scenario(A_NUMBER)
async def within_a_wrapper(model: AnthropicModel) -> object:
    """MODEL-66"""
    return await Agent(WrapperModel(model), tools=[lucky_number]).run("A number.")


@wrappers.scenario(A_NUMBER)
async def within_a_limit_of_one(model: AnthropicModel) -> object:
    """MODEL-66: a limit of 1 does not deadlock, also while calls are open."""
    agent = Agent(ConcurrencyLimitedModel(model, limiter=1), tools=[lucky_number])
    return [await agent.run("A number."), await agent.run("A number.")]


@wrappers.scenario(A_NUMBER, on=(SONNET, HAIKU))
async def within_all_of_them_and_an_override(model: AnthropicModel) -> object:
    """MODEL-66"""
    limited = ConcurrencyLimitedModel(InstrumentedModel(WrapperModel(model)), limiter=1)
    agent = Agent("test", tools=[lucky_number], instructions="Not this.")
    with agent.override(model=FallbackModel(limited, TestModel()), instructions="Be brief."):
        async with agent.run_stream("A number.") as stream:
            output = await stream.get_output()
        return [output, stream.all_messages(), await agent.run("A number.")]


@wrappers.scenario(A_NUMBER)
async def as_the_fallback_of_another(model: AnthropicModel) -> object:
    """MODEL-50, MODEL-66"""

    def fail(messages: object, info: object) -> ModelResponse:
        raise ModelHTTPError(529, "another")

    return await Agent(FallbackModel(FunctionModel(fail), model), tools=[lucky_number]).run("A number.")


@wrappers.scenario(echo)
async def a_fallback_that_is_not_needed(model: AnthropicModel) -> object:
    """MODEL-50"""
    return await Agent(FallbackModel(model, TestModel())).run("Hello.")


async def spans_of(run: Callable[[TracerProvider], Awaitable[object]]) -> list[dict[str, Any]]:
    """Return a run's spans: names, and attributes that do not depend on the way."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    await run(provider)
    return [{"name": span.name, **_attributes(span.attributes)} for span in exporter.get_finished_spans()]


def _attributes(attributes: Any) -> dict[str, object]:
    fields = {name: value for name, value in attributes.items() if not name.startswith(_OF_THE_WAY)}
    return {name: _from_json(value) for name, value in fields.items() if name != "logfire.metrics"}


def _from_json(value: object) -> object:
    if isinstance(value, str) and value.startswith(("[", "{")):
        return json.loads(value)
    return value


@wrappers.scenario(steps([thought("Hm."), call("lucky_number", low=1, high=3)], "Two."), on=(SONNET, HAIKU))
async def spans_of_a_run(model: AnthropicModel) -> object:
    """MODEL-08, MODEL-71: a span for each API call, with correct attributes."""

    async def run(tracing: TracerProvider) -> object:
        traced = InstrumentedModel(model, InstrumentationSettings(tracer_provider=tracing))
        return await Agent(traced, tools=[lucky_number]).run("A number.")

    spans = await spans_of(run)
    assert [span["name"] for span in spans].count(f"chat {model.model_name}") == 2
    return spans


@wrappers.scenario(echo)
async def spans_of_a_stream(model: AnthropicModel) -> object:
    """MODEL-71"""

    async def run(tracing: TracerProvider) -> object:
        traced = InstrumentedModel(model, InstrumentationSettings(tracer_provider=tracing))
        async with Agent(traced).run_stream("Hello.") as stream:
            return await stream.get_output()

    spans = await spans_of(run)
    for span in spans:
        # The time to the first piece differs between runs.
        if span["name"].startswith("chat "):
            assert 0 < span.pop("gen_ai.client.operation.time_to_first_chunk") < 60
    return spans


@wrappers.scenario(echo)
async def spans_without_content(model: AnthropicModel) -> object:
    """MODEL-72: the setting to exclude content is respected."""

    async def run(tracing: TracerProvider) -> object:
        bare = InstrumentationSettings(tracer_provider=tracing, include_content=False)
        return await Agent(InstrumentedModel(model, bare)).run("A secret prompt.")

    spans = await spans_of(run)
    assert "secret" not in str(spans)
    return spans


@wrappers.scenario(steps([text("I call. "), call("lookup", key="a")], "Found."), on=(SONNET, HAIKU))
async def requests_without_an_agent(model: AnthropicModel) -> object:
    """MODEL-09, MODEL-41"""
    lookup = ToolDefinition(name="lookup", parameters_json_schema={"type": "object", "properties": {"key": {}}})
    offer = ModelRequestParameters(function_tools=[lookup], allow_text_output=True)
    prompt = ModelRequest([SystemPromptPart("Be brief."), UserPromptPart("Look up.")])
    first = await model_request(model, [prompt], model_request_parameters=offer)
    [part] = [part for part in first.parts if isinstance(part, ToolCallPart)]
    tool_result = ModelRequest([ToolReturnPart("lookup", "b", tool_call_id=part.tool_call_id)])
    async with model_request_stream(model, [prompt, first, tool_result], model_request_parameters=offer) as stream:
        events = [event async for event in stream]
    return [first, events, stream.get()]


def rhyming(body: Body) -> Reply:
    """Answer the tool's request, else call the tool, else return the result."""
    prompt = str(body["messages"][-1]["content"])
    if "What rhymes with" in prompt:
        return "Trouse."
    return "It is trouse." if "Trouse" in prompt else [call("rhyme", word="house")]


@wrappers.scenario(rhyming, on=(SONNET, HAIKU))
async def a_tool_that_asks_the_model_without_an_agent(model: AnthropicModel) -> object:
    """MODEL-65: while the call is open; a server's sampling request is the same."""

    async def rhyme(word: str) -> str:
        """Find a rhyme."""
        question = ModelRequest.user_text_prompt(f"What rhymes with {word}?", instructions="You are a poet.")
        return (await model_request(model, [question], model_settings={"max_tokens": 50})).text or ""

    return await Agent(model, tools=[rhyme], instructions="Be brief.").run("A rhyme.")


@wrappers.scenario(steps([thought("Hm."), text("I call. "), call("lookup", key="a")]), on=(SONNET, HAIKU))
async def a_stream_that_is_drained_elsewhere(model: AnthropicModel) -> object:
    """MODEL-68: durable engines store the response and the events, and replay them where the agent runs."""
    lookup = ToolDefinition(name="lookup", parameters_json_schema={"type": "object", "properties": {"key": {}}})
    offer = ModelRequestParameters(function_tools=[lookup])
    prompt = ModelRequest.user_text_prompt("Look up.")
    async with model_request_stream(model, [prompt], model_request_parameters=offer) as stream:
        events = [event async for event in stream]
    [stored] = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json([stream.get()]))
    assert isinstance(stored, ModelResponse)
    played = CompletedStreamedResponse(stored, model_request_parameters=offer, replay_events=True)
    again = [event async for event in played]
    assert played.get() == stored
    return [events, again, stored]


@wrappers.scenario(steps(stopped("refusal", text("No.")), "Never."))
async def a_fallback_on_a_response(model: AnthropicModel) -> object:
    """MODEL-50, MODEL-51: the framework rejects the response, and calls the next model."""

    def was_filtered(response: Any) -> bool:
        return response.finish_reason == "content_filter"

    second = TestModel(custom_output_text="from the other model")
    fallback = FallbackModel(model, second, fallback_on=was_filtered)
    return await Agent(fallback).run("Something bad.")
