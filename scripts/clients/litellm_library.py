"""LiteLLM as a library: OpenAI's form of requests, mapped to the Messages API."""

import json
from typing import Any

import litellm
from abilities import (
    CITY,
    HELLO,
    LOOK,
    MODEL,
    OVERLOAD,
    PNG_BASE64,
    REFUSE,
    TOKEN,
    URL,
    WEATHER,
    WEATHER_SCHEMA,
    WRONG_TOKEN,
    failure,
    report,
    weather,
)
from city import City


def complete(messages: list[Any], token: str = TOKEN, **options: Any) -> Any:
    """Return a completion."""
    return litellm.completion(f"anthropic/{MODEL}", messages, api_base=URL, api_key=token, max_tokens=100, **options)


def ask(content: Any, token: str = TOKEN, retries: int = 0) -> str:
    """Return the text of an answer."""
    return complete([{"role": "user", "content": content}], token, num_retries=retries).choices[0].message.content


def stream() -> list[str]:
    """Return the pieces of an answer."""
    chunks = complete([{"role": "user", "content": HELLO}], stream=True)
    return [text for chunk in chunks if (text := chunk.choices[0].delta.content)]


def tools() -> str:
    """Return the answer after a call of a tool."""
    offered = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER_SCHEMA}}]
    messages: list[Any] = [{"role": "user", "content": WEATHER}]
    message = complete(messages, tools=offered).choices[0].message
    [call] = message.tool_calls
    result = weather(**json.loads(call.function.arguments))
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": result}]
    return complete(messages, tools=offered).choices[0].message.content


def structured() -> object:
    """Return an answer of a given type."""
    answer = complete([{"role": "user", "content": CITY}], response_format=City)
    return City.model_validate_json(answer.choices[0].message.content).model_dump()


def images() -> str:
    """Ask about an image."""
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG_BASE64}"}}
    return ask([{"type": "text", "text": LOOK}, image])


def errors() -> list[str]:
    """Return a refusal, a wrong token, and the answer after a retry."""
    ask(REFUSE)
    refused = failure(lambda: ask(HELLO))
    stranger = failure(lambda: ask(HELLO, WRONG_TOKEN))
    ask(OVERLOAD)
    return [refused, stranger, ask(HELLO, retries=2)]


report(
    "litellm", text=lambda: ask(HELLO), stream=stream, tools=tools, structured=structured, images=images, errors=errors
)
