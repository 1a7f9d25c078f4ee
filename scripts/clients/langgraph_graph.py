"""LangGraph: a graph with a model and a tool node."""

from typing import Any

import abilities
from abilities import CITY, LOOK, TOKEN, URL
from city import City
from langchain_anthropic import ChatAnthropic
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import SecretStr

IMAGE = {"type": "image", "base64": abilities.PNG_BASE64, "mime_type": "image/png"}


def chat(token: str = TOKEN) -> ChatAnthropic:
    return ChatAnthropic(model_name=abilities.MODEL, base_url=URL, api_key=SecretStr(token), timeout=30, stop=None)


def graph(token: str = TOKEN) -> Any:
    model = chat(token).bind_tools([abilities.weather])

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_node("tools", ToolNode([abilities.weather]))
    builder.add_edge(START, "answer")
    builder.add_conditional_edges("answer", tools_condition)
    builder.add_edge("tools", "answer")
    return builder.compile()


def ask(content: Any, *token: str) -> str:
    return graph(*token).invoke({"messages": [("user", content)]})["messages"][-1].text


def stream() -> list[str]:
    prompt = {"messages": [("user", abilities.HELLO)]}
    return [chunk.text for chunk, _ in graph().stream(prompt, stream_mode="messages") if chunk.text]


def structured() -> object:
    """Return the typed answer of a graph with one node."""
    builder = StateGraph(dict)
    builder.add_node("city", lambda _: {"city": chat().with_structured_output(City).invoke(CITY)})
    builder.add_edge(START, "city")
    return builder.compile().invoke({})["city"].model_dump()


abilities.report(
    ask,
    "langgraph",
    "langchain-anthropic",
    stream=stream,
    tools=lambda: ask(abilities.WEATHER),
    structured=structured,
    images=lambda: ask([{"type": "text", "text": LOOK}, IMAGE]),
)
