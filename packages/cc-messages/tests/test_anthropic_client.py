"""The official client over the transport: it works as with the direct API."""

from itertools import product
from typing import Any, cast

import pytest
from anthropic import (
    APIConnectionError,
    AsyncAnthropic,
    NotFoundError,
)
from anthropic.types import Message

from cc_loopback import LoopbackServer, Reply
from warm_clients.api_data import MODEL
from warm_clients.client import Client

HELLO: Any = [{"role": "user", "content": "Hello."}]
WEATHER: Any = {"name": "weather", "description": "The weather.", "input_schema": {"type": "object"}, "strict": True}


@pytest.fixture
def claude(several: Client) -> AsyncAnthropic:
    return AsyncAnthropic(api_key="not used", http_client=several.http, max_retries=0)


def answers(api: LoopbackServer, *replies: Reply) -> None:
    """Make the API give these answers in order, and then repeat the last."""
    remaining = [*replies]

    def respond(_: object) -> Reply:
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    api.respond = respond


async def test_create_gives_a_message(shared_api: LoopbackServer, claude: AsyncAnthropic) -> None:
    """MSG-20, MSG-23, ARCH-01"""
    answer = {
        "id": "msg_1",
        "model": f"{MODEL}-20260101",
        "content": "Hi.",
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }
    answers(shared_api, answer)
    message = await claude.messages.create(model=MODEL, max_tokens=9, messages=HELLO, stop_sequences=["END"])
    assert [block.to_dict() for block in message.content] == [{"type": "text", "text": "Hi."}]
    assert (message.id, message.model, message.stop_reason) == ("msg_1", f"{MODEL}-20260101", "end_turn")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (7, 3)
    assert shared_api.requests[0]["stop_sequences"] == ["END"]


async def test_stream_gives_the_same_message_in_pieces(shared_api: LoopbackServer, claude: AsyncAnthropic) -> None:
    """MSG-20"""
    content: list[Any] = [
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
        {"type": "text", "text": "It is sunny in Paris."},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris", "days": [1, 2]}},
    ]
    answers(shared_api, {"id": "msg_1", "content": content, "usage": {"input_tokens": 7, "output_tokens": 3}})
    arguments: Any = {"model": MODEL, "max_tokens": 2000, "messages": HELLO, "tools": [WEATHER]}
    async with claude.messages.stream(**arguments) as stream:
        pieces = [text async for text in stream.text_stream]
        streamed = await stream.get_final_message()
    whole = cast("Message", await claude.messages.create(**arguments))
    assert "".join(pieces) == "It is sunny in Paris."
    assert len(pieces) > 1
    assert [block.to_dict() for block in whole.content] == content
    # The client adds a field to the joined message.
    assert {**whole.to_dict(), "stop_details": None} == streamed.to_dict()


async def test_a_broken_connection_is_a_connection_error_and_the_client_tries_again(
    shared_api: LoopbackServer, claude: AsyncAnthropic
) -> None:
    """MSG-32, MSG-E07"""
    answers(shared_api, "Hi.")
    shared_api.fail_next(after_events=3, times=2)
    with pytest.raises(APIConnectionError):
        await claude.messages.create(model=MODEL, max_tokens=9, messages=HELLO)
    message = await claude.with_options(max_retries=1).messages.create(model=MODEL, max_tokens=9, messages=HELLO)
    assert message.content[0].to_dict() == {"type": "text", "text": "Hi."}
    assert len(shared_api.requests) == 3


async def test_the_api_gets_little_more_than_it_would_get_directly(
    shared_api: LoopbackServer, claude: AsyncAnthropic
) -> None:
    """MSG-53: for conversations with texts only, also with a `system` message."""
    turns: list[Any] = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 50} for n in range(21)]
    long: list[Any] = [{"role": "user", "content": "Hello? " * 3_000}]
    conversations: list[Any] = [HELLO, long, turns, [*turns, {"role": "system", "content": "Mind the gap."}]]
    async with AsyncAnthropic(api_key="key", base_url=shared_api.url) as direct:
        for messages, system in product(conversations, ("", "Be brief. " * 100)):
            fields: Any = {"system": system} if system else {}
            for client in (direct, claude):
                await client.messages.create(model=MODEL, max_tokens=9, messages=messages, **fields)
            plain, ours = (len(call.raw) for call in shared_api.calls[-2:])
            assert ours <= 1.1 * plain + 600


@pytest.mark.parametrize(
    "base_url",
    [
        "https://gateway.example/anthropic",
        "http://localhost:8080/a/v1/b/",
        "HTTPS://GATEWAY.EXAMPLE/",
        "http://[::1]:80/team%20a",
        "http://127.0.0.1/caf%C3%A9/v1/messages",
    ],
)
async def test_any_base_url_reaches_all_paths(base_url: str, several: Client, shared_api: LoopbackServer) -> None:
    """MSG-188: with a path, a port, percent signs, upper case, IPv6, a trailing slash."""
    answers(shared_api, "Hi.")
    claude = AsyncAnthropic(api_key="not used", base_url=base_url, http_client=several.http, max_retries=0)
    message = await claude.messages.create(model=MODEL, max_tokens=9, messages=HELLO)
    assert [block.type for block in message.content] == ["text"]
    assert (await claude.messages.count_tokens(model=MODEL, messages=HELLO)).input_tokens > 0
    models = await claude.models.list()
    assert (await claude.models.retrieve(models.data[0].id)).id == models.data[0].id
    with pytest.raises(NotFoundError):
        await claude.messages.batches.list()


async def test_what_the_cli_cannot_carry_is_told_once_by_name(
    several: Client, shared_api: LoopbackServer, caplog: pytest.LogCaptureFixture
) -> None:
    """MSG-189: without values."""
    answers(shared_api, "Hi.")
    claude = AsyncAnthropic(api_key="not used", http_client=several.http, max_retries=0)
    for _ in range(2):
        await claude.messages.create(
            model=MODEL,
            max_tokens=9,
            messages=HELLO,
            extra_query={"beta": "true", "team": "planted"},
            extra_headers={"idempotency-key": "planted"},
        )
    [line] = [record.getMessage() for record in caplog.records if record.name == "cc_messages.transport"]
    assert "idempotency-key, team" in line
    assert "beta" not in line and "planted" not in caplog.text
