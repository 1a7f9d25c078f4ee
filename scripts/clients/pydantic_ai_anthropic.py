"""pydantic-ai's own model for Anthropic."""

import asyncio

from abilities import (
    CITY,
    HELLO,
    LOOK,
    MODEL,
    OVERLOAD,
    PNG,
    REFUSE,
    WEATHER,
    WRONG_TOKEN,
    failure,
    report,
    weather,
)
from city import City
from pydantic_ai import Agent, BinaryContent, NativeOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

ID = f"anthropic:{MODEL}"


def ask(prompt: str) -> str:
    """Return the text of an answer."""
    return Agent(ID).run_sync(prompt).output


def stream() -> list[str]:
    """Return the pieces of an answer."""

    async def run() -> list[str]:
        async with Agent(ID).run_stream(HELLO) as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    return asyncio.run(run())


def structured() -> object:
    """Return an answer of a given type, by a tool and by a schema."""
    one = Agent(ID, output_type=City).run_sync(CITY).output
    assert one == Agent(ID, output_type=NativeOutput(City)).run_sync(CITY).output
    return one.model_dump()


def errors() -> list[str]:
    """Return a refusal, a wrong token, and the answer after a retry."""
    ask(REFUSE)
    refused = failure(lambda: ask(HELLO))
    model = AnthropicModel(MODEL, provider=AnthropicProvider(api_key=WRONG_TOKEN))
    stranger = failure(lambda: Agent(model).run_sync(HELLO))
    ask(OVERLOAD)
    return [refused, stranger, ask(HELLO)]


report(
    "pydantic-ai-slim",
    "anthropic",
    text=lambda: ask(HELLO),
    stream=stream,
    tools=lambda: Agent(ID, tools=[weather]).run_sync(WEATHER).output,
    structured=structured,
    images=lambda: Agent(ID).run_sync([LOOK, BinaryContent(data=PNG, media_type="image/png")]).output,
    errors=errors,
)
