"""LangChain's Anthropic chat model on the server, and over the transport in this process."""

from typing import Any, cast

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from pydantic import BaseModel, SecretStr

from api_script import steps
from cc_langchain import ChatClaudeCode
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeProvider
from messages_server import MessagesServer

pytestmark = pytest.mark.worlds

MODEL = "claude-sonnet-5"
CALL: Any = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}}


class City(BaseModel):
    """A city."""

    name: str
    people: int


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


@pytest.fixture(params=["server", "in this process"])
def model(
    request: pytest.FixtureRequest, messages_server: MessagesServer, shared_provider: ClaudeCodeProvider
) -> ChatAnthropic:
    if request.param == "server":
        return ChatAnthropic(
            model_name=MODEL,
            base_url=messages_server.url,
            api_key=SecretStr(messages_server.token),
            max_tokens_to_sample=100,
            timeout=20,
            stop=None,
        )
    return ChatClaudeCode(model=MODEL, transport=shared_provider.transport, max_tokens=100, timeout=20)


def test_a_conversation(model: ChatAnthropic, loopback: LoopbackServer) -> None:
    """MSG-97"""
    loopback.respond = steps("answer 1", "answer 3")
    history: list[Any] = [SystemMessage("Be brief."), HumanMessage("Hello.")]
    history += [model.invoke(history), HumanMessage("And?")]
    answer = model.invoke(history)
    assert answer.text == "answer 3"
    assert answer.response_metadata["stop_reason"] == "end_turn"
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["input_tokens"] > 0
    system = loopback.requests[1]["system"]  # the server makes the text a block, for a cache breakpoint
    assert (system if isinstance(system, str) else system[-1]["text"]) == "Be brief."
    assert [message["role"] for message in loopback.requests[1]["messages"]] == ["user", "assistant", "user"]


def test_a_stream(model: ChatAnthropic, loopback: LoopbackServer) -> None:
    """MSG-20, MSG-97"""
    loopback.respond = steps("one two three four five six")
    chunks = [chunk.text for chunk in model.stream("Count.")]
    assert "".join(chunks) == "one two three four five six"
    assert len([chunk for chunk in chunks if chunk]) > 1


async def test_tools_called_and_answered(model: ChatAnthropic, loopback: LoopbackServer) -> None:
    """MSG-97, MSG-72"""
    loopback.respond = steps([CALL], "It is sunny.")
    with_tools = cast("Runnable[Any, AIMessage]", model.bind_tools([weather]))  # pyright: ignore[reportUnknownMemberType]
    history: list[Any] = [HumanMessage("How is the weather in Paris?")]
    reply = await with_tools.ainvoke(history)
    assert isinstance(reply, AIMessage)
    [call] = reply.tool_calls
    assert (call["name"], call["args"]) == ("weather", {"city": "Paris"})
    result = await weather.ainvoke(call)
    assert isinstance(result, ToolMessage)
    answer = await with_tools.ainvoke([*history, reply, result])
    assert answer.text == "It is sunny."
    [sent] = loopback.requests[1]["messages"][2]["content"]
    assert (sent["type"], sent["tool_use_id"], sent["content"]) == ("tool_result", "toolu_1", "sunny in Paris")


def test_structured_output(model: ChatAnthropic, loopback: LoopbackServer) -> None:
    """MSG-97"""
    values: dict[str, Any] = {"name": "Paris", "people": 2}

    def respond(body: dict[str, Any]) -> Any:
        if body.get("output_config", {}).get("format", {}).get("type") == "json_schema":
            return '{"name": "Paris", "people": 2}'
        assert body["tool_choice"]["name"] == "City"
        return [{"type": "tool_use", "id": "toolu_1", "name": "City", "input": values}]

    loopback.respond = respond
    for method in ("function_calling", "json_schema"):
        typed_model = cast("Runnable[Any, Any]", model.with_structured_output(City, method=method))  # pyright: ignore[reportUnknownMemberType]
        assert typed_model.invoke("Which?") == City(**values)
    assert ["tool_choice" in body for body in loopback.requests] == [True, False]
