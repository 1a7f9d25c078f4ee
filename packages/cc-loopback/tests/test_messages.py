"""A scripted server's answers to the official client, streamed and whole."""

from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import Anthropic
from anthropic.types import Message

from .conftest import BODY, PROMPT, Connect, Serve

EVERYTHING: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Let me think about it.", "signature": "c2lnbmVk"},
    {"type": "redacted_thinking", "data": "aGlkZGVu"},
    {"type": "text", "text": "Grüße, 世界 🎈\n and more."},
    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Zürich", "days": [1, 2]}},
    {"type": "tool_use", "id": "toolu_2", "name": "clock", "input": {}},
]


def ask(client: Anthropic, *, stream: bool) -> Message:
    if not stream:
        return client.messages.create(model="claude-sonnet-5", max_tokens=100, messages=PROMPT)
    with client.messages.stream(model="claude-sonnet-5", max_tokens=100, messages=PROMPT) as events:
        return events.get_final_message()


def blocks_of(message: Message) -> list[dict[str, Any]]:
    return [block.model_dump(exclude_none=True, exclude={"parsed_output"}) for block in message.content]


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def received(serve: Serve, connect: Connect, request: pytest.FixtureRequest) -> Callable[[Any], Message]:
    """Return the message that the client receives for a reply."""
    return lambda reply: ask(connect(serve(lambda body: reply)), stream=request.param)


Received = Callable[[Any], Message]


def test_every_block_type_arrives_unchanged(received: Received) -> None:
    """LOOP-10, LOOP-12, LOOP-20."""
    message = received(EVERYTHING)
    assert blocks_of(message) == EVERYTHING
    assert message.stop_reason == "tool_use"


def test_each_answer_has_ids_of_its_own(serve: Serve) -> None:
    """LOOP-15."""
    server = serve(lambda body: [{"type": "tool_use", "name": "weather", "input": {}}])
    with httpx2.Client(base_url=server.url) as client:
        responses = [client.post("/v1/messages", json=BODY) for _ in range(9)]
    assert len({response.headers["request-id"] for response in responses}) == 9
    assert len({response.json()["id"] for response in responses}) == 9
    assert len({response.json()["content"][0]["id"] for response in responses}) == 9


def test_token_count_grows_with_the_prompt(serve: Serve, connect: Connect) -> None:
    """LOOP-13."""
    server = serve(None)
    client = connect(server)
    short = client.messages.count_tokens(model="m", messages=PROMPT)
    long = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "Hello" * 100}])
    assert 0 < short.input_tokens < long.input_tokens
    assert ask(client, stream=False).usage.input_tokens == short.input_tokens
    assert [call.path for call in server.calls][:2] == ["/v1/messages/count_tokens"] * 2
    assert len(server.requests) == 1


def test_models_are_listed_page_by_page_and_an_unknown_one_is_refused(serve: Serve, connect: Connect) -> None:
    """LOOP-14."""
    client = connect(serve(None))
    everything = [model.id for model in client.models.list()]
    assert "claude-sonnet-5" in everything
    assert [model.id for model in client.models.list(limit=1)] == everything
    last = client.models.list(before_id=everything[-1], limit=1)
    assert ([model.id for model in last.data], last.has_more) == ([everything[-2]], True)
    assert client.models.retrieve("claude-sonnet-5").display_name == "Claude Sonnet 5"
    with pytest.raises(anthropic.NotFoundError, match="model: gpt"):
        client.models.retrieve("gpt")
    with pytest.raises(anthropic.BadRequestError, match="nobody"):
        client.models.list(after_id="nobody")


def hop(declining: str, answering: str) -> dict[str, Any]:
    models = {"from": {"model": declining}, "to": {"model": answering}}
    return {"type": "fallback", **models, "trigger": {"type": "refusal", "category": None}}


@pytest.mark.parametrize(
    ("content", "first_model"),
    [
        ([hop("a", "b"), hop("b", "c"), {"type": "text", "text": "Yes."}], "c"),
        ([{"type": "text", "text": "Y"}, hop("a", "c"), {"type": "text", "text": "es."}], "a"),
        ([hop("a", "b"), {"type": "text", "text": "Y"}, hop("b", "c")], "b"),
    ],
)
def test_a_stream_begins_with_the_model_that_declines_in_mid_answer(
    content: list[dict[str, Any]], first_model: str, serve: Serve, connect: Connect
) -> None:
    """LOOP-27"""
    iterations = [{"type": "message", "model": "a"}, {"type": "fallback_message", "model": "c"}]
    reply = {"model": "c", "content": content, "usage": {"iterations": iterations}}
    client: Any = connect(serve(lambda body: reply))
    request: Any = {"model": "a", "max_tokens": 9, "messages": PROMPT}
    with client.beta.messages.stream(**request) as stream:
        start = next(event for event in stream if event.type == "message_start")
        assert start.message.model == first_model
        streamed: Any = stream.get_final_message().to_dict(exclude_unset=True)
    whole: Any = client.beta.messages.create(**request).to_dict()
    assert whole["content"] == content
    assert streamed["model"] == whole["model"] == "c"
    assert streamed["usage"]["iterations"] == whole["usage"]["iterations"] == iterations
