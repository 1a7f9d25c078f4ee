"""LlamaIndex's model for Anthropic."""

import asyncio

from abilities import (
    CITY,
    HELLO,
    LOOK,
    MODEL,
    OVERLOAD,
    PNG,
    REFUSE,
    TOKEN,
    URL,
    WEATHER,
    WRONG_TOKEN,
    failure,
    report,
    weather,
)
from city import City
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.llms.anthropic import Anthropic


def model(token: str = TOKEN) -> Anthropic:
    """Return the model."""
    return Anthropic(model=MODEL, base_url=URL, api_key=token, max_tokens=100, timeout=30)


def ask(prompt: str) -> str:
    """Return the text of an answer."""
    return model().complete(prompt).text


def stream() -> list[str]:
    """Return the pieces of an answer."""
    return [piece.delta for piece in model().stream_complete(HELLO) if piece.delta]


def tools() -> str:
    """Return the answer of an agent after a call of a tool."""

    async def run() -> str:
        return str(await FunctionAgent(tools=[weather], llm=model()).run(WEATHER))

    return asyncio.run(run())


def structured() -> object:
    """Return an answer of a given type."""
    return model().as_structured_llm(City).complete(CITY).raw.model_dump()


def images() -> str:
    """Ask about an image."""
    blocks = [ImageBlock(image=PNG, image_mimetype="image/png"), TextBlock(text=LOOK)]
    return model().chat([ChatMessage(role="user", blocks=blocks)]).message.content or ""


def errors() -> list[str]:
    """Return a refusal, a wrong token, and the answer after a retry."""
    ask(REFUSE)
    refused = failure(lambda: ask(HELLO))
    stranger = failure(lambda: model(WRONG_TOKEN).complete(HELLO))
    ask(OVERLOAD)
    return [refused, stranger, ask(HELLO)]


report(
    "llama-index-core",
    "anthropic",
    "llama-index-llms-anthropic",
    text=lambda: ask(HELLO),
    stream=stream,
    tools=tools,
    structured=structured,
    images=images,
    errors=errors,
)
