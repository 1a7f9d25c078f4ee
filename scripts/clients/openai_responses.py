"""OpenAI's client, responses."""

import json
from typing import Any

import abilities
from abilities import MODEL, TOKEN, URL
from city import City
from openai import OpenAI


def client(token: str) -> OpenAI:
    return OpenAI(base_url=f"{URL}/v1", api_key=token)


def ask(content: Any, token: str = TOKEN, **options: Any) -> str:
    return client(token).responses.create(model=MODEL, input=content, **options).output_text


def stream() -> list[str]:
    events = client(TOKEN).responses.create(model=MODEL, input=abilities.HELLO, stream=True)
    return [event.delta for event in events if event.type == "response.output_text.delta"]


def tools() -> str:
    offered: Any = [{"type": "function", "name": "weather", "parameters": abilities.WEATHER_SCHEMA}]
    items: list[Any] = [{"role": "user", "content": abilities.WEATHER}]
    output = client(TOKEN).responses.create(model=MODEL, input=items, tools=offered).output
    [call] = [item for item in output if item.type == "function_call"]
    result = abilities.weather(**json.loads(call.arguments))
    items += [item.model_dump(exclude_none=True) for item in output]
    items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    return ask(items, tools=offered)


def structured() -> object:
    parsed = client(TOKEN).responses.parse(model=MODEL, input=abilities.CITY, text_format=City)
    return parsed.output_parsed.model_dump()


IMAGE = {"type": "input_image", "image_url": f"data:image/png;base64,{abilities.PNG_BASE64}"}
CONTENT = [{"type": "input_text", "text": abilities.LOOK}, IMAGE]
abilities.report(
    ask,
    "openai",
    stream=stream,
    tools=tools,
    structured=structured,
    images=lambda: ask([{"role": "user", "content": CONTENT}]),
)
