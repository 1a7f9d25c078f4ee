"""The measure of exactness: an agent's requests reach the API as `AnthropicModel` sends them.

Each scenario runs twice, with `AnthropicModel` on the loopback API and with `ClaudeCodeModel` through the real CLI to
the same API. The recorded bodies must agree but for what the design allows (`both_ways.comparable`), and outputs, all
messages, usage and finish reasons must agree as well.
"""

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelRetry, NativeOutput, PromptedOutput, RunContext, ToolOutput
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ThinkingPart, UserPromptPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.run import AgentRunResult

from both_ways import BothWays, comparable, comparable_messages

SONNET = "claude-sonnet-5"
HAIKU = "claude-haiku-4-5"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
USAGE = {"input_tokens": 120, "output_tokens": 30, "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7}

Run = Callable[[AnthropicModel], Awaitable[AgentRunResult[Any]]]


class City(BaseModel):
    """A city."""

    name: str
    population: int


def usual_usage(default: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    """The default responder, with a usage that does not depend on the length of the request."""

    def respond(body: dict[str, Any]) -> dict[str, Any]:
        return {"content": default(body), "usage": USAGE}

    return respond


async def plain_text(model: AnthropicModel) -> AgentRunResult[Any]:
    return await Agent(model).run("Hello!")


async def parallel_tools_with_deps_and_a_retry(model: AnthropicModel) -> AgentRunResult[Any]:
    agent = Agent(model, deps_type=str, instructions="You are helpful.")
    attempts: list[str] = []

    @agent.tool
    def get_weather(ctx: RunContext[str], city: str) -> str:
        """The weather in a city."""
        attempts.append(city)
        if len(attempts) == 1:
            raise ModelRetry("The weather station is slow; ask again.")
        return f"{ctx.deps} in {city}"

    @agent.tool_plain
    def get_time(city: str, with_seconds: bool = False) -> dict[str, Any]:
        """The time in a city."""
        return {"city": city, "time": "12:00", "seconds": with_seconds}

    return await agent.run("Weather and time in Paris?", deps="sunny")


async def image_in_the_prompt(model: AnthropicModel) -> AgentRunResult[Any]:
    return await Agent(model).run(["What is this?", BinaryContent(PNG, media_type="image/png"), "Say it briefly."])


async def signed_thinking_in_history(model: AnthropicModel) -> AgentRunResult[Any]:
    thought = ThinkingPart("They greet me.", signature="c2lnbmVk", provider_name=model.system)
    answer = ModelResponse(parts=[thought, TextPart("Hello.")], provider_name=model.system, model_name=SONNET)
    history: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Hi.")]), answer]
    return await Agent(model).run("And now?", message_history=history, model_settings={"thinking": "high"})


async def tool_output(model: AnthropicModel) -> AgentRunResult[Any]:
    return await Agent(model, output_type=ToolOutput(City)).run("A city, please.")


async def tool_output_and_a_second_run(model: AnthropicModel) -> AgentRunResult[Any]:
    agent = Agent(model, output_type=ToolOutput(City))
    first = await agent.run("A city, please.")
    return await agent.run("Another one.", message_history=first.all_messages())


async def native_output(model: AnthropicModel) -> AgentRunResult[Any]:
    return await Agent(model, output_type=NativeOutput(City)).run("A city, please.")


async def prompted_output(model: AnthropicModel) -> AgentRunResult[Any]:
    return await Agent(model, output_type=PromptedOutput(City)).run("A city, please.")


async def sampling_parameters(model: AnthropicModel) -> AgentRunResult[Any]:
    settings = {"temperature": 0.25, "max_tokens": 77, "stop_sequences": ["END", "STOP"]}
    return await Agent(model).run("Hello!", model_settings=settings)  # pyright: ignore[reportArgumentType]


async def tool_choice_none(model: AnthropicModel) -> AgentRunResult[Any]:
    agent = Agent(model)
    agent.tool_plain(lucky_number)
    return await agent.run("Hello!", model_settings={"tool_choice": "none"})


async def tool_choice_required(model: AnthropicModel) -> AgentRunResult[Any]:
    agent = Agent(model, output_type=[ToolOutput(City), str])
    agent.tool_plain(lucky_number)
    return await agent.run("Hello!", model_settings={"parallel_tool_calls": False})


async def three_turns(model: AnthropicModel) -> AgentRunResult[Any]:
    agent = Agent(model, instructions="Answer briefly.")
    first = await agent.run("One.")
    second = await agent.run("Two.", message_history=first.all_messages())
    return await agent.run("Three.", message_history=second.all_messages())


async def streamed_tools(model: AnthropicModel) -> AgentRunResult[Any]:
    agent = Agent(model)
    agent.tool_plain(lucky_number)
    async with agent.iter("Give me a number.") as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for _ in stream:
                        pass
    assert run.result is not None
    return run.result


def lucky_number(low: int, high: int) -> int:
    """A number between two."""
    return (low + high) // 2


SCENARIOS: list[tuple[Run, str]] = [
    (plain_text, SONNET),
    (plain_text, HAIKU),
    (plain_text, "claude-opus-5-5"),
    (parallel_tools_with_deps_and_a_retry, SONNET),
    (parallel_tools_with_deps_and_a_retry, HAIKU),
    (image_in_the_prompt, SONNET),
    (signed_thinking_in_history, SONNET),
    (signed_thinking_in_history, HAIKU),
    (tool_output, SONNET),
    (tool_output_and_a_second_run, SONNET),
    (native_output, SONNET),
    (prompted_output, SONNET),
    (sampling_parameters, HAIKU),
    (tool_choice_none, SONNET),
    (tool_choice_required, HAIKU),
    (three_turns, SONNET),
    (streamed_tools, SONNET),
]


@pytest.mark.parametrize(("run", "name"), SCENARIOS, ids=lambda value: getattr(value, "__name__", value))
async def test_the_api_receives_what_anthropic_model_sends(run: Run, name: str, both_ways: BothWays) -> None:
    api = both_ways.api
    api.respond = usual_usage(api.respond)  # pyright: ignore[reportArgumentType]
    direct = await run(both_ways.direct(name))
    expected = comparable([*api.requests])
    api.requests.clear()

    through = await run(both_ways.through(name))

    assert comparable([*api.requests]) == expected
    assert through.output == direct.output
    assert comparable_messages(through.all_messages()) == comparable_messages(direct.all_messages())
    assert through.usage == direct.usage
    reasons = [[m.finish_reason for m in r.all_messages() if isinstance(m, ModelResponse)] for r in (direct, through)]
    assert reasons[0] == reasons[1]
