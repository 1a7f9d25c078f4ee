"""LangChain's chat model for Anthropic."""

from typing import Any

import abilities
from abilities import CITY, LOOK, TOKEN, URL
from city import City
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from pydantic import SecretStr


def chat(token: str = TOKEN) -> ChatAnthropic:
    return ChatAnthropic(model_name=abilities.MODEL, base_url=URL, api_key=SecretStr(token), timeout=30, stop=None)


def ask(content: Any, *token: str) -> str:
    return chat(*token).invoke([("user", content)]).text


def structured() -> object:
    """Return a typed answer, by each method."""
    [first, second] = [
        chat().with_structured_output(City, method=method).invoke(CITY).model_dump()
        for method in ("json_schema", "function_calling")
    ]
    assert first == second
    return first


IMAGE = {"type": "image", "base64": abilities.PNG_BASE64, "mime_type": "image/png"}
PROMPT = {"messages": [("user", abilities.WEATHER)]}
abilities.report(
    ask,
    "langchain",
    "langchain-anthropic",
    stream=lambda: [chunk.text for chunk in chat().stream(abilities.HELLO) if chunk.text],
    tools=lambda: create_agent(chat(), [abilities.weather]).invoke(PROMPT)["messages"][-1].text,
    structured=structured,
    images=lambda: ask([{"type": "text", "text": LOOK}, IMAGE]),
)
