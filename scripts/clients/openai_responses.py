"""OpenAI's client, responses, through LiteLLM's proxy."""

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
    return client.responses.create(model=MODEL, input=content).output_text


def stream(client: OpenAI) -> list[str]:
    """Return the pieces of an answer."""
    events = client.responses.create(model=MODEL, input=HELLO, stream=True)
    return [event.delta for event in events if event.type == "response.output_text.delta"]


def tools(client: OpenAI) -> str:
    """Return the answer after a call of a tool."""
    offered: Any = [{"type": "function", "name": "weather", "parameters": WEATHER_SCHEMA}]
    items: list[Any] = [{"role": "user", "content": WEATHER}]
    output = client.responses.create(model=MODEL, input=items, tools=offered).output
    [call] = [item for item in output if item.type == "function_call"]
    result = weather(**json.loads(call.arguments))
    items += [item.model_dump(exclude_none=True) for item in output]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    return client.responses.create(model=MODEL, input=items, tools=offered).output_text


def structured(client: OpenAI) -> object:
    """Return an answer of a given type."""
    return client.responses.parse(model=MODEL, input=CITY, text_format=City).output_parsed.model_dump()


def images(client: OpenAI) -> str:
    """Ask about an image."""
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG_BASE64}"}
    return ask(client, [{"role": "user", "content": [{"type": "input_text", "text": LOOK}, image]}])


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
