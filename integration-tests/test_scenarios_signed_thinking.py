"""Long conversations with signed thinking: what the direct API accepts, it accepts through Claude Code.

Changed requests are in `scenarios/thinking.py`: dropped and refused thinking, with each login.
"""

import warnings
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from anthropic import AsyncAnthropic, BadRequestError
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ThinkingPart
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicStaleThinkingBlockWarning
from pydantic_ai.providers.anthropic import AnthropicProvider

from api_script import Body, Reply, call, steps, text, thought
from cc_loopback import Login, LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

BINDING = "claude-opus-5-5"
BETA = "thinking-binding-controls-2026-08-01"
TURNS = 200
# In this turn the system prompt changes, which the API refuses on both ways.
REWRITTEN_AT = 120


def thinks_and_calls(body: Body) -> Reply:
    """Think before and after a tool call, in each turn."""
    answers = sum(message["role"] == "assistant" for message in body["messages"])
    if answers % 2 == 0:
        return [thought(f"Thought {answers}."), call("weigh", grams=answers / 3)]
    hidden = {"type": "redacted_thinking", "data": ""}
    return [hidden, thought(f"Thought {answers}."), text(f"Answer {answers}.")]


@pytest.fixture
async def ways(nothing_is_left: None) -> AsyncIterator[tuple[LoopbackServer, dict[str, AnthropicModel]]]:
    """Yield an API that signs thinking, and models on it: directly, and with two logins."""
    logins: tuple[Login, ...] = ("api-key", "oauth")
    async with AsyncExitStack() as stack:
        api = stack.enter_context(LoopbackServer(thinks_and_calls, signs_thinking=True))
        client = await stack.enter_async_context(AsyncAnthropic(api_key="key", base_url=api.url, max_retries=0))
        models: dict[str, AnthropicModel] = {
            "direct": AnthropicModel(BINDING, provider=AnthropicProvider(anthropic_client=client))
        }
        for login in logins:
            provider = ClaudeCodeProvider(env=api.env(login), pool=2, max_retries=0)
            models[login] = ClaudeCodeModel(BINDING, provider=await stack.enter_async_context(provider))
        yield api, models


async def requests_by_turn(api: LoopbackServer, model: AnthropicModel) -> list[tuple[int, int]]:
    """Return the numbers of requests and of thinking parts in each turn of a conversation."""
    agent = Agent(model, deps_type=int, model_settings={"thinking": "low"})

    @agent.instructions(on_change="append", name="turn")
    def of_the_turn(ctx: RunContext[int]) -> str:
        return f"This is turn {ctx.deps}."

    @agent.instructions
    def in_the_system_prompt(ctx: RunContext[int]) -> str:
        return "Be brief." if ctx.deps < REWRITTEN_AT else "Be kind."

    @agent.tool_plain
    def weigh(grams: float) -> str:
        return f"{grams} g"

    turns: list[tuple[int, int]] = []
    history: list[ModelMessage] = []
    for turn in range(TURNS):
        api.requests.clear()
        result = await agent.run(f"Question {turn}.", deps=turn, message_history=history)
        history = result.all_messages()
        parts = [part for message in result.new_messages() for part in message.parts]
        turns.append((len(api.requests), sum(isinstance(part, ThinkingPart) for part in parts)))
    assert f"This is turn {TURNS - 1}." in str(api.requests[-1]["messages"])
    assert "Be kind." in str(api.requests[-1]["system"])
    assert str(api.requests[-1]["messages"]).count("sig_") == 3 * TURNS - 2
    return turns


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_two_hundred_turns_with_thinking_are_accepted_as_directly(
    ways: tuple[LoopbackServer, dict[str, AnthropicModel]],
) -> None:
    """MODEL-05, MODEL-20: with tools and changing instructions; the API refuses only the changed system prompt."""
    api, models = ways
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnthropicStaleThinkingBlockWarning)
        turns = {name: await requests_by_turn(api, model) for name, model in models.items()}
    expected = [(3 if turn == REWRITTEN_AT else 2, 3) for turn in range(TURNS)]
    assert turns == dict.fromkeys(("direct", "api-key", "oauth"), expected)


@pytest.mark.worlds
@pytest.mark.parametrize(("second", "requests"), [("direct", 1), ("api-key", 1), ("oauth", 2)])
async def test_thinking_stays_with_the_same_key_and_is_dropped_with_a_subscription(
    second: str, requests: int, ways: tuple[LoopbackServer, dict[str, AnthropicModel]]
) -> None:
    """MODEL-05: the subscription's system blocks change the prefix; the request is repeated without thinking."""
    api, models = ways
    agent = Agent(instructions="Be brief.", toolsets=[])
    api.respond = steps([thought("Hm."), text("Yes.")], [thought("Hm."), text("Yes.")])
    first = await agent.run("Hello.", model=models["api-key"])
    api.requests.clear()
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        await agent.run("Go on.", model=models[second], message_history=first.all_messages())
    assert len(api.requests) == requests
    assert [note.category for note in noted] == [AnthropicStaleThinkingBlockWarning] * (requests - 1)


@pytest.mark.worlds
async def test_another_machine_goes_on_with_the_thinking(
    ways: tuple[LoopbackServer, dict[str, AnthropicModel]],
) -> None:
    """MODEL-05: with an API key and with a subscription."""
    api, models = ways
    logins: tuple[Login, ...] = ("api-key", "oauth")
    for login in logins:
        first = await Agent(models[login], instructions="Be brief.", tools=[weigh]).run("Weigh it.")
        async with ClaudeCodeProvider(env=api.env(login), pool=1, max_retries=0, cache_breakpoints=True) as provider:
            api.requests.clear()
            model = ClaudeCodeModel(BINDING, provider=provider)
            agent = Agent(model, instructions="Be brief.", tools=[weigh])
            await agent.run("Weigh it again.", message_history=first.all_messages())
        assert len(api.requests) == 2


def weigh(grams: float) -> str:
    """Weigh."""
    return f"{grams} g"


@pytest.mark.worlds
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_other_clients_are_told_why_thinking_is_refused(
    is_streamed: bool, ways: tuple[LoopbackServer, dict[str, AnthropicModel]]
) -> None:
    """MODEL-05, MSG-35: and can ask the API to drop it."""
    api, models = ways
    api.respond = steps([thought("Hm."), text("Yes.")], [thought("Hm."), text("Yes.")])
    model = models["api-key"]
    assert isinstance(model, ClaudeCodeModel)
    request: Any = {"model": BINDING, "max_tokens": 99, "system": "Be brief.", "messages": [said("user", "Hello.")]}
    client: Any = model.client
    first = await client.beta.messages.create(**request)
    request["messages"] += [said("assistant", [block.to_dict() for block in first.content]), said("user", "Go on.")]
    request["system"] = "Be kind."
    with pytest.raises(BadRequestError, match=r"messages\.1\.content\.0: .* bound to a different conversation"):
        await client.beta.messages.create(**request, stream=is_streamed)
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    message = await client.beta.messages.create(**request, thinking=binding, betas=[BETA])
    [dropped] = message.input_transformations
    assert (dropped.path, dropped.reason) == ("messages.1.content.0", "prefix_binding_mismatch")


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}
