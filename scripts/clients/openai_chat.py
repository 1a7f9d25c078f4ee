"""OpenAI's client, chat completions, through LiteLLM's proxy."""

import json
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
    WEATHER_SCHEMA,
    WRONG_TOKEN,
    failure,
    report,
    weather,
)
from city import City
from litellm_proxy import KEY, proxy
from openai import OpenAI


def ask(client: OpenAI, content: Any) -> str:
    """Return the text of an answer."""
    messages: Any = [{"role": "user", "content": content}]
    return client.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content or ""


def stream(client: OpenAI) -> list[str]:
    """Return the pieces of an answer."""
    chunks = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": HELLO}], stream=True)
    return [text for chunk in chunks if chunk.choices and (text := chunk.choices[0].delta.content)]


def tools(client: OpenAI) -> str:
    """Return the answer after a call of a tool."""
    offered: Any = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER_SCHEMA}}]
    messages: list[Any] = [{"role": "user", "content": WEATHER}]
    message = client.chat.completions.create(model=MODEL, messages=messages, tools=offered).choices[0].message
    [call] = message.tool_calls or []
    result = weather(**json.loads(call.function.arguments))
    messages += [message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": call.id, "content": result}]
    return client.chat.completions.create(model=MODEL, messages=messages, tools=offered).choices[0].message.content


def structured(client: OpenAI) -> object:
    """Return an answer of a given type."""
    messages: Any = [{"role": "user", "content": CITY}]
    answer = client.chat.completions.parse(model=MODEL, messages=messages, response_format=City)
    return answer.choices[0].message.parsed.model_dump()


def images(client: OpenAI) -> str:
    """Ask about an image."""
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG_BASE64}"}}
    return ask(client, [{"type": "text", "text": LOOK}, image])


def errors(client: OpenAI) -> list[str]:
    """Return a refusal, a wrong token of the proxy, and the answer after a retry."""
    ask(client, REFUSE)
    refused = failure(lambda: ask(client, HELLO))
    with proxy(WRONG_TOKEN) as url:
        stranger = failure(lambda: ask(OpenAI(base_url=url, api_key=KEY), HELLO))
    ask(client, OVERLOAD)
    return [refused, stranger, ask(client, HELLO)]


with proxy() as address:
    openai = OpenAI(base_url=address, api_key=KEY)
    report(
        "litellm",
        "openai",
        text=lambda: ask(openai, HELLO),
        stream=lambda: stream(openai),
        tools=lambda: tools(openai),
        structured=lambda: structured(openai),
        images=lambda: images(openai),
        errors=lambda: errors(openai),
    )
