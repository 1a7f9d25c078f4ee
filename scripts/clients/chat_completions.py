"""Abilities with OpenAI's chat completions: `litellm_library.py`, `openai_chat.py`."""

import json
from collections.abc import Callable
from typing import Any

import abilities
from city import City

Complete = Callable[..., Any]
"""Takes messages, options and the token as `token`; returns a completion."""


def report(complete: Complete, *packages: str, retried: Complete | None = None) -> None:
    def ask(content: Any, token: str = abilities.TOKEN, complete: Complete = complete) -> str:
        return complete([{"role": "user", "content": content}], token=token).choices[0].message.content

    def stream() -> list[str]:
        chunks = complete([{"role": "user", "content": abilities.HELLO}], stream=True)
        return [text for chunk in chunks if chunk.choices and (text := chunk.choices[0].delta.content)]

    def tools() -> str:
        parameters = {"name": "weather", "parameters": abilities.WEATHER_SCHEMA}
        offered = [{"type": "function", "function": parameters}]
        messages: list[Any] = [{"role": "user", "content": abilities.WEATHER}]
        message = complete(messages, tools=offered).choices[0].message
        [call] = message.tool_calls
        result = abilities.weather(**json.loads(call.function.arguments))
        messages += [message.model_dump(exclude_none=True)]
        messages += [{"role": "tool", "tool_call_id": call.id, "content": result}]
        return complete(messages, tools=offered).choices[0].message.content

    def structured() -> object:
        answer = complete([{"role": "user", "content": abilities.CITY}], response_format=City)
        return City.model_validate_json(answer.choices[0].message.content).model_dump()

    abilities.report(
        ask,
        *packages,
        retried=None if retried is None else lambda prompt: ask(prompt, complete=retried),
        stream=stream,
        tools=tools,
        structured=structured,
        images=lambda: ask(abilities.CHAT_IMAGE),
    )
