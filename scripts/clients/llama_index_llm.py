"""LlamaIndex's model for Anthropic."""

import asyncio

import abilities
from abilities import CITY, HELLO, LOOK, MODEL, PNG, TOKEN, URL
from city import City
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.llms.anthropic import Anthropic


def model(token: str = TOKEN) -> Anthropic:
    return Anthropic(model=MODEL, base_url=URL, api_key=token, max_tokens=100, timeout=30)


def tools() -> str:
    async def run() -> str:
        return str(await FunctionAgent(tools=[abilities.weather], llm=model()).run(abilities.WEATHER))

    return asyncio.run(run())


def images() -> str:
    blocks = [ImageBlock(image=PNG, image_mimetype="image/png"), TextBlock(text=LOOK)]
    return model().chat([ChatMessage(role="user", blocks=blocks)]).message.content or ""


abilities.report(
    lambda prompt, *token: model(*token).complete(prompt).text,
    "llama-index-core",
    "anthropic",
    "llama-index-llms-anthropic",
    stream=lambda: [piece.delta for piece in model().stream_complete(HELLO) if piece.delta],
    tools=tools,
    structured=lambda: model().as_structured_llm(City).complete(CITY).raw.model_dump(),
    images=images,
)
