"""pydantic-ai's own model for Anthropic."""

import asyncio
from typing import Any

import abilities
from abilities import CITY, HELLO, LOOK, PNG, TOKEN
from city import City
from pydantic_ai import Agent, BinaryContent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

ID = f"anthropic:{abilities.MODEL}"


def ask(prompt: Any, token: str = TOKEN) -> str:
    model = AnthropicModel(abilities.MODEL, provider=AnthropicProvider(api_key=token))
    return Agent(model).run_sync(prompt).output


def stream() -> list[str]:
    async def run() -> list[str]:
        async with Agent(ID).run_stream(HELLO) as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    return asyncio.run(run())


def structured() -> object:
    """Return a typed answer, by a tool and by a schema."""
    city = Agent(ID, output_type=City).run_sync(CITY).output
    assert city == Agent(ID, output_type=NativeOutput(City)).run_sync(CITY).output
    return city.model_dump()


abilities.report(
    ask,
    "pydantic-ai-slim",
    "anthropic",
    stream=stream,
    tools=lambda: Agent(ID, tools=[abilities.weather]).run_sync(abilities.WEATHER).output,
    structured=structured,
    images=lambda: ask([LOOK, BinaryContent(data=PNG, media_type="image/png")]),
)
