"""Signed thinking and logins: what the direct API accepts, it accepts through Claude Code.

Changed requests are in `scenarios/thinking.py`: dropped and refused thinking, with each login.
"""

import warnings
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from anthropic import AsyncAnthropic
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicStaleThinkingBlockWarning
from pydantic_ai.providers.anthropic import AnthropicProvider

from api_script import Body, Reply, call, steps, text, thought
from cc_loopback import Login, LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

BINDING = "claude-opus-5-5"


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


def weigh(grams: float) -> str:
    """Weigh."""
    return f"{grams} g"
