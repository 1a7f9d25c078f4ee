"""The official Python client."""

from typing import Any

from abilities import (
    CITY,
    HELLO,
    LOOK,
    MODEL,
    OVERLOAD,
    PNG_BASE64,
    REFUSE,
    WEATHER,
    WRONG_TOKEN,
    failure,
    report,
    weather,
)
from anthropic import Anthropic, beta_tool
from city import City

claude = Anthropic()


def ask(content: Any, client: Anthropic = claude) -> str:
    """Return the text of an answer."""
    message = client.messages.create(model=MODEL, max_tokens=100, messages=[{"role": "user", "content": content}])
    return message.content[0].text


def stream() -> list[str]:
    """Return the pieces of an answer."""
    with claude.messages.stream(model=MODEL, max_tokens=100, messages=[{"role": "user", "content": HELLO}]) as stream:
        return [*stream.text_stream]


def tools() -> str:
    """Return the answer after a call of a tool."""
    messages: Any = [{"role": "user", "content": WEATHER}]
    runner = claude.beta.messages.tool_runner(
        model=MODEL, max_tokens=100, messages=messages, tools=[beta_tool(weather)]
    )
    return runner.until_done().content[0].text


def structured() -> object:
    """Return an answer of a given type."""
    messages: Any = [{"role": "user", "content": CITY}]
    parsed = claude.messages.parse(model=MODEL, max_tokens=100, messages=messages, output_format=City).parsed_output
    return parsed.model_dump()


def images() -> str:
    """Ask about an image."""
    source = {"type": "base64", "media_type": "image/png", "data": PNG_BASE64}
    return ask([{"type": "image", "source": source}, {"type": "text", "text": LOOK}])


def errors() -> list[str]:
    """Return a refusal, a wrong token, and the answer after a retry."""
    ask(REFUSE)
    refused = failure(lambda: ask(HELLO))
    stranger = failure(lambda: ask(HELLO, Anthropic(api_key=WRONG_TOKEN)))
    ask(OVERLOAD)
    return [refused, stranger, ask(HELLO)]


report(
    "anthropic",
    text=lambda: ask(HELLO),
    stream=stream,
    tools=tools,
    structured=structured,
    images=images,
    errors=errors,
)
