"""LangChain's chat model for Anthropic."""

from typing import Any

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
    WRONG_TOKEN,
    failure,
    report,
    weather,
)
from city import City
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from pydantic import SecretStr


def chat(token: str = TOKEN) -> ChatAnthropic:
    """Return the chat model."""
    return ChatAnthropic(model_name=MODEL, base_url=URL, api_key=SecretStr(token), timeout=30, stop=None)


model = chat()


def ask(content: Any) -> str:
    """Return the text of an answer."""
    return model.invoke([("user", content)]).text


def stream() -> list[str]:
    """Return the pieces of an answer."""
    return [chunk.text for chunk in model.stream(HELLO) if chunk.text]


def tools() -> str:
    """Return the answer of an agent after a call of a tool."""
    return create_agent(model, [weather]).invoke({"messages": [("user", WEATHER)]})["messages"][-1].text


def structured() -> object:
    """Return an answer of a given type, by each method."""
    [one, other] = [
        model.with_structured_output(City, method=method).invoke(CITY).model_dump()
        for method in ("json_schema", "function_calling")
    ]
    assert one == other
    return one


def images() -> str:
    """Ask about an image."""
    image = {"type": "image", "base64": PNG_BASE64, "mime_type": "image/png"}
    return ask([{"type": "text", "text": LOOK}, image])


def errors() -> list[str]:
    """Return a refusal, a wrong token, and the answer after a retry."""
    ask(REFUSE)
    refused = failure(lambda: ask(HELLO))
    stranger = failure(lambda: chat(WRONG_TOKEN).invoke(HELLO))
    ask(OVERLOAD)
    return [refused, stranger, ask(HELLO)]


report(
    "langchain",
    "langchain-anthropic",
    text=lambda: ask(HELLO),
    stream=stream,
    tools=tools,
    structured=structured,
    images=images,
    errors=errors,
)
