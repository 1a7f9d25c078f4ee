"""The official Python client works with the server as with the API."""

from collections.abc import Generator
from typing import Any, cast

import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_tool
from anthropic.types import Message

from cc_loopback import LoopbackServer, Reply
from messages_server import MessagesServer

pytestmark = pytest.mark.worlds

MODEL = "claude-sonnet-5"
HELLO: Any = [{"role": "user", "content": "Hello."}]
ASK: Any = {"model": MODEL, "max_tokens": 100, "messages": HELLO}
WEATHER: Any = {
    "name": "weather",
    "description": "The weather.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CALL: Any = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}}


@pytest.fixture
def server(messages_server: MessagesServer, loopback: LoopbackServer) -> MessagesServer:
    return messages_server


@pytest.fixture
def claude(server: MessagesServer) -> Generator[Anthropic]:
    with Anthropic(base_url=server.url, api_key=server.token, max_retries=0) as claude:
        yield claude


def answers(api: LoopbackServer, *replies: Reply) -> None:
    """Let the API give these answers in order, and then repeat the last."""
    remaining = [*replies]

    def respond(_: object) -> Reply:
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    api.respond = respond


def create(claude: Anthropic, **fields: Any) -> Message:
    """Return the complete answer to a greeting."""
    return cast(Message, claude.messages.create(**{**ASK, **fields}))


def test_the_tool_runner_of_the_client_runs_its_loop(claude: Anthropic, loopback: LoopbackServer) -> None:
    """MSG-09, MSG-97, MSG-72: it prefers a thread, and works without."""

    @beta_tool
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"sunny in {city}"

    answers(loopback, [CALL], "It is sunny.")
    runner: Any = cast(Any, claude.beta.messages).tool_runner(**ASK, tools=[weather])
    last = runner.until_done()
    assert last.content[0].to_dict() == {"type": "text", "text": "It is sunny."}
    assert loopback.requests[1]["messages"][1]["content"] == [CALL]
    [result] = loopback.requests[1]["messages"][2]["content"]
    assert (result["tool_use_id"], result["content"]) == ("toolu_1", "sunny in Paris")


async def test_the_async_client(server: MessagesServer, loopback: LoopbackServer) -> None:
    """MSG-97: with a bearer token."""
    answers(loopback, "Good day.")
    async with AsyncAnthropic(base_url=server.url, auth_token=server.token) as claude:
        message = cast(Message, await claude.messages.create(**ASK))
        async with claude.messages.stream(**ASK, tools=[WEATHER], tool_choice={"type": "none"}) as stream:
            events = [event.type async for event in stream]
    assert message.content[0].to_dict() == {"type": "text", "text": "Good day."}
    assert events[0] == "message_start"
    assert events[-1] == "message_stop"
    assert loopback.requests[1]["tool_choice"] == {"type": "none"}
