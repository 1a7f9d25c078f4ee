"""A prompt has the same price here as with `AnthropicModel`, by the counts of an API that caches."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.usage import RunUsage

from cc_loopback import Login, LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider

pytestmark = pytest.mark.worlds

MODEL = "claude-sonnet-5"
LONG = "a word " * 57_200
COUNTS = ("input_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens", "cost")


@pytest.fixture
async def direct(loopback: LoopbackServer) -> AsyncIterator[AnthropicModel]:
    async with AsyncAnthropic(api_key="key", base_url=loopback.url, max_retries=0) as client:
        yield AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))


def counts(usage: RunUsage) -> dict[str, Any]:
    return {name: value for name, value in asdict(usage).items() if name in COUNTS}


@pytest.mark.parametrize(
    ("login", "settings"), [("api-key", {}), ("oauth", {"anthropic_cache_messages": True})], ids=["one-off", "cached"]
)
async def test_a_prompt_of_100000_tokens_costs_the_same(
    settings: Any, login: Login, loopback: LoopbackServer, direct: AnthropicModel
) -> None:
    """MODEL-121: sent once, and sent again."""
    usages: list[list[RunUsage]] = []
    async with ClaudeCodeProvider(env=loopback.env(login), pool=1, max_retries=0) as provider:
        for model in (direct, ClaudeCodeModel(MODEL, provider=provider)):
            loopback.reset()
            agent = Agent(model, model_settings=settings)
            usages.append([(await agent.run(LONG)).usage for _ in range(2)])
    expected, observed = ([counts(usage) for usage in each] for each in usages)
    first, second = expected
    assert first["input_tokens"] >= 100_000
    assert (first["cache_write_tokens"] > 100_000) == (second["cache_read_tokens"] > 100_000) == bool(settings)
    if login == "oauth":
        # Claude Code's own system blocks, some 100 tokens, below the length that is cached.
        added = observed[0]["input_tokens"] - first["input_tokens"]
        assert 0 <= added < 100
        assert [row["cache_write_tokens"] // 1000 for row in observed] == [
            row["cache_write_tokens"] // 1000 for row in expected
        ]
        return
    assert observed == expected
