"""The official Python client."""

from typing import Any

import abilities
from abilities import request
from anthropic import Anthropic, beta_tool
from city import City

claude = Anthropic()


def ask(content: Any, token: str = abilities.TOKEN) -> str:
    return Anthropic(api_key=token).messages.create(**request(content)).content[0].text


def stream() -> list[str]:
    with claude.messages.stream(**request(abilities.HELLO)) as stream:
        return [*stream.text_stream]


def tools() -> str:
    runner = claude.beta.messages.tool_runner(**request(abilities.WEATHER), tools=[beta_tool(abilities.weather)])
    return runner.until_done().content[0].text


abilities.report(
    ask,
    "anthropic",
    stream=stream,
    tools=tools,
    structured=lambda: claude.messages.parse(**request(abilities.CITY), output_format=City).parsed_output.model_dump(),
    images=lambda: ask(abilities.IMAGE),
)
