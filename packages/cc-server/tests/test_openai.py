"""OpenAI's protocols with OpenAI's own client: the requests at the API, the answers, the errors, and the limits."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, cast

import openai
import pytest
from openai import AsyncOpenAI

from cc_server import openai as translation
from warm_clients.api_data import BODY, MODEL, PNG, THINKING, text
from warm_clients.client import Client
from warm_clients.waiting import eventually

from .conftest import Serve
from .served import Served

pytestmark = [pytest.mark.worlds, pytest.mark.timeout(120), pytest.mark.filterwarnings("ignore:::(litellm|pydantic)")]

CALLS = [
    {"type": "tool_use", "id": f"toolu_{number}", "name": "weather", "input": {"city": city}}
    for number, city in enumerate(("Paris", "Rome"))
]
CALLED = [("toolu_0", "weather", {"city": "Paris"}), ("toolu_1", "weather", {"city": "Rome"})]
USAGE = {"input_tokens": 60, "output_tokens": 40, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}
PARAMETERS: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL: Any = {"type": "function", "function": {"name": "weather", "description": "W.", "parameters": PARAMETERS}}
TOOL: Any = {"type": "function", "name": "weather", "description": "W.", "parameters": PARAMETERS}
ADDRESS = f"data:image/png;base64,{PNG}"
HELLO: Any = [{"role": "user", "content": "Hello."}]

# At the API, for both protocols.
QUESTION = [text("Look."), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]
RESULTS = [
    {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": weather}
    for number, weather in enumerate(("sunny", "rain"))
]


def connected(server: Served, api_key: str = "") -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{server.url}/v1", api_key=api_key or server.token, max_retries=0)


@pytest.fixture
async def chatting(served: Served) -> AsyncIterator[AsyncOpenAI]:
    """OpenAI's client of the server."""
    async with connected(served) as client:
        yield client


def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Call both tools, then tell what they said."""
    if "tool_result" in json.dumps(body["messages"]):
        return {"content": [THINKING, text("Sunny and rain.")], "usage": USAGE}
    return {"content": [text("I ask."), *CALLS], "usage": USAGE}


def plain_blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [text(content)] if isinstance(content, str) else content


@pytest.mark.parametrize("stream", [False, True])
async def test_a_conversation_with_parallel_tools_by_chat_completions(
    client: Client, chatting: AsyncOpenAI, stream: bool
) -> None:
    """MSG-171."""
    client.answers(answer)
    untyped: Any = chatting
    messages: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": ADDRESS}}],
        },
    ]
    options: dict[str, Any] = {"model": MODEL, "tools": [CHAT_TOOL], "tool_choice": "required", "max_tokens": 99}

    async def complete() -> Any:
        if not stream:
            return await untyped.chat.completions.create(messages=messages, **options)
        extra = {"stream_options": {"include_usage": True}}
        async with untyped.chat.completions.stream(messages=messages, **options, **extra) as events:
            return await events.get_final_completion()

    first = await complete()
    [choice] = first.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I ask.")
    calls = choice.message.tool_calls
    assert [(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls] == CALLED
    # As at OpenAI, all of the prompt's tokens count, also those in the cache.
    assert (first.usage.prompt_tokens, first.usage.completion_tokens, first.usage.total_tokens) == (70, 40, 110)
    assert first.usage.prompt_tokens_details.cached_tokens == 7
    messages += [choice.message.model_dump(include={"role", "content", "tool_calls"})]
    messages += [
        {"role": "tool", "tool_call_id": call.id, "content": weather}
        for call, weather in zip(calls, ("sunny", "rain"), strict=True)
    ]
    last = (await complete()).choices[0]
    assert (last.finish_reason, last.message.content) == ("stop", "Sunny and rain.")
    assert last.message.reasoning_content == THINKING["thinking"]

    request = client.api.requests[-1]
    assert [plain_blocks(message) for message in request["messages"]] == [QUESTION, [text("I ask."), *CALLS], RESULTS]
    assert request["system"] == [text("Be brief.")]
    assert request["tool_choice"] == {"type": "any"}
    [tool] = request["tools"]
    assert (tool["name"], tool["description"], tool["input_schema"]) == ("weather", "W.", PARAMETERS)
    assert request["max_tokens"] == 99


@pytest.mark.parametrize("stream", [False, True])
async def test_a_conversation_with_parallel_tools_by_responses(
    client: Client, chatting: AsyncOpenAI, stream: bool
) -> None:
    """MSG-171."""
    client.answers(answer)
    untyped: Any = chatting
    items: list[Any] = [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": ADDRESS}],
        }
    ]
    options: dict[str, Any] = {"model": MODEL, "tools": [TOOL], "instructions": "Be brief.", "max_output_tokens": 99}

    async def respond() -> Any:
        if not stream:
            return await untyped.responses.create(input=items, **options)
        async with untyped.responses.stream(input=items, **options) as events:
            return await events.get_final_response()

    first = await respond()
    calls = [item for item in first.output if item.type == "function_call"]
    assert [(call.call_id, call.name, json.loads(call.arguments)) for call in calls] == CALLED
    assert (first.output_text, first.status) == ("I ask.", "completed")
    assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.total_tokens) == (70, 40, 110)
    assert first.usage.input_tokens_details.cached_tokens == 7
    items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in first.output]
    items += [
        {"type": "function_call_output", "call_id": call.call_id, "output": weather}
        for call, weather in zip(calls, ("sunny", "rain"), strict=True)
    ]
    last = await respond()
    assert last.output_text == "Sunny and rain."
    assert last.output[0].type == "reasoning"

    request = client.api.requests[-1]
    assert [plain_blocks(message) for message in request["messages"]] == [QUESTION, [text("I ask."), *CALLS], RESULTS]
    assert (request["system"], request["max_tokens"]) == ([text("Be brief.")], 99)


async def test_each_event_of_a_response_has_its_type_as_name(client: Client, served: Served) -> None:
    """MSG-171: OpenAI's client does not read the names, and others do."""
    client.answers(answer)
    response = await served.post({"model": MODEL, "input": "Hello.", "tools": [TOOL], "stream": True}, "/v1/responses")
    events = [event.removeprefix("event: ").split("\ndata: ") for event in response.text.strip().split("\n\n")]
    assert [name for name, _ in events] == [json.loads(data)["type"] for _, data in events]


@pytest.mark.parametrize(
    ("stop_reason", "finish_reason", "status"),
    [
        ("max_tokens", "length", "incomplete"),
        ("refusal", "content_filter", "incomplete"),
        ("stop_sequence", "stop", "completed"),
    ],
)
async def test_stop_reasons_have_openais_names(
    client: Client, chatting: AsyncOpenAI, stop_reason: str, finish_reason: str, status: str
) -> None:
    """MSG-171."""
    client.answers(lambda _: {"content": [text("And so")], "stop_reason": stop_reason})
    completion = await chatting.chat.completions.create(model=MODEL, messages=HELLO, stop=["X"])
    assert completion.choices[0].finish_reason == finish_reason
    assert client.api.requests[-1]["stop_sequences"] == ["X"]
    assert (await chatting.responses.create(model=MODEL, input="Hello.")).status == status


@pytest.mark.parametrize(
    ("status", "seen", "error"),
    [
        (400, 400, openai.BadRequestError),
        (401, 401, openai.AuthenticationError),
        (403, 403, openai.PermissionDeniedError),
        (404, 404, openai.NotFoundError),
        (429, 429, openai.RateLimitError),
        (500, 500, openai.InternalServerError),
        (529, 503, openai.InternalServerError),
    ],
)
async def test_an_error_of_the_api_has_openais_form(
    client: Client, chatting: AsyncOpenAI, status: int, seen: int, error: type[openai.APIStatusError]
) -> None:
    """MSG-172: with its message, its id, and the time after which to try again."""
    chat: Any = partial(chatting.chat.completions.create, messages=HELLO)
    for create in (chat, partial(chat, stream=True), partial(cast(Any, chatting.responses.create), input="Hello.")):
        client.api.fail_next(status=status, message="Not now.", headers={"retry-after": "3"})
        with pytest.raises(error) as caught:
            await create(model=MODEL)
        assert caught.value.status_code == seen
        assert cast("dict[str, Any]", caught.value.body)["message"] == "Not now."
        assert caught.value.request_id
        assert caught.value.response.headers["retry-after"] == "3"
        await client.settled()  # a repeat after a 404 may take the next fault


async def test_a_stream_that_breaks_off_ends_with_the_apis_error(client: Client, chatting: AsyncOpenAI) -> None:
    """MSG-172."""
    client.answers(lambda _: "A long answer. " * 20)
    for create, asked in (
        (chatting.chat.completions.create, {"messages": HELLO}),
        (chatting.responses.create, {"input": "Hello."}),
    ):
        client.api.fail_next(status=529, after_events=6, message="Too much.")
        with pytest.raises(openai.APIError, match="Too much"):
            async for _ in await cast(Any, create)(model=MODEL, stream=True, **asked):
                pass


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"input": "Hello.", "previous_response_id": "resp_1"}, "previous_response_id: not supported"),
        ({"input": "Hello.", "reasoning": {"effort": "low"}, "model": "sonnet"}, "no effort for 'sonnet'"),
        ({"messages": [{"role": "robot", "content": [{"type": ["text"]}]}]}, "LiteLLM cannot translate this request"),
    ],
)
async def test_a_request_that_messages_cannot_carry_is_refused(
    client: Client, served: Served, fields: dict[str, Any], message: str
) -> None:
    """MSG-173."""
    path = "/v1/responses" if "input" in fields else "/v1/chat/completions"
    response = await served.post({"model": MODEL, **fields}, path)
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]
    assert client.api.requests == []


async def test_no_field_of_a_request_chooses_where_it_goes(client: Client, served: Served) -> None:
    """MSG-173: LiteLLM would take addresses, keys, providers and answers from a request."""
    client.answers(lambda _: "From the API.")
    fields: dict[str, Any] = {
        "api_base": "http://127.0.0.1:9", "base_url": "http://127.0.0.1:9", "api_key": "x",
        "custom_llm_provider": "openai", "extra_headers": {"x-api-key": "x"}, "fallbacks": ["gpt-9"],
        "mock_response": "Made up.", "model_list": [{}],
    }  # fmt: skip
    response = await served.post({"model": MODEL, "messages": HELLO, **fields}, "/v1/chat/completions")
    assert response.json()["choices"][0]["message"]["content"] == "From the API."
    response = await served.post({"model": MODEL, "input": "Hello.", **fields}, "/v1/responses")
    assert response.json()["output"][0]["content"][0]["text"] == "From the API."


def test_the_library_reads_no_file_of_the_working_folder(tmp_path: Path) -> None:
    """MSG-173: a file there could bring the server another login."""
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=sk-from-the-folder\n", encoding="utf-8")
    program = (
        "import os; from cc_server.litellm_translation import load; load(); print(os.environ.get('ANTHROPIC_API_KEY'))"
    )
    env = {name: value for name, value in os.environ.items() if name != "ANTHROPIC_API_KEY"}
    printed = subprocess.check_output([sys.executable, "-c", program], cwd=tmp_path, env=env, text=True, timeout=100)
    assert printed == "None\n"


async def test_a_picture_by_its_address_is_fetched_by_nobody_here(client: Client, chatting: AsyncOpenAI) -> None:
    """MSG-173."""
    client.answers(lambda _: "A picture.")
    address = "https://pictures.invalid/cat.png"
    messages: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": address}}]}]
    await chatting.chat.completions.create(model=MODEL, messages=messages)
    [block] = client.api.requests[-1]["messages"][0]["content"]
    assert block["source"] == {"type": "url", "url": address}


async def test_models_have_the_form_of_the_client(served: Served, chatting: AsyncOpenAI) -> None:
    """MSG-171."""
    names = [model.id async for model in chatting.models.list()]
    assert MODEL in names
    assert (await chatting.models.retrieve(MODEL)).id == MODEL
    with pytest.raises(openai.NotFoundError):
        await chatting.models.retrieve("gpt-9")
    async with served.http() as http:
        answers = await http.get("/v1/models")
    assert [model["id"] for model in answers.json()["data"]] == names
    assert "object" not in answers.json()


async def test_errors_of_the_server_itself_have_openais_form(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-172, MSG-174."""
    async with connected(served, api_key="wrong") as stranger:
        with pytest.raises(openai.AuthenticationError, match="token of this server"):
            await stranger.chat.completions.create(model=MODEL, messages=HELLO)
    async with served.http() as http:
        wrong = await http.get("/v1/chat/completions")
        assert (wrong.status_code, wrong.json()["error"]["type"]) == (405, "invalid_request_error")
        monkeypatch.setattr(translation, "is_installed", lambda: False)
        missing = await http.post("/v1/chat/completions", json={"model": MODEL, "messages": HELLO})
        assert missing.status_code == 404
        assert "pip install 'cc-server[openai]'" in missing.json()["error"]["message"]
        assert "object" not in (await http.get("/v1/models")).json()


async def test_tokens_and_the_access_log_count_both_protocols(
    serve: Serve, client: Client, clients_file: Callable[[str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    """MSG-171: a client's budget holds over all protocols."""
    client.answers(lambda _: {"content": "Fine.", "usage": USAGE})
    caplog.set_level(logging.INFO, "cc_server.access")
    server = serve(client, clients=clients_file('[clients.alice]\ntoken = "alice"\ntokens_per_day = 215'))
    async with connected(server, api_key="alice") as alice:
        await alice.chat.completions.create(model=MODEL, messages=HELLO)
        await alice.responses.create(model=MODEL, input="Hello.")
        with pytest.raises(openai.RateLimitError, match="of 215 tokens"):
            await alice.chat.completions.create(model=MODEL, messages=HELLO)
    assert (await server.post(token="alice")).status_code == 429
    lines = [line.partition(" input")[0] for line in caplog.messages if "alice" in line]
    assert lines[:2] == [f"alice POST {path} {MODEL} 200" for path in ("/v1/chat/completions", "/v1/responses")]


async def test_thirty_at_once_get_their_own_answers_and_abandoned_ones_leave_nothing(
    served: Served, several: Client, serve: Serve
) -> None:
    """MSG-171: with tools, in both protocols, a third of them abandoned in mid-stream."""

    def respond(body: dict[str, Any]) -> Any:
        word = plain_blocks(body["messages"][-1])[0]["text"]
        return [
            text(f"{word} " * 20),
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": word}},
        ]

    several.answers(respond)
    server = serve(several)

    async def one(client: AsyncOpenAI, number: int) -> str:
        word = f"word{number}"
        if number % 3 < 2:
            created = await client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": word}], tools=[CHAT_TOOL], stream=True
            )
            deltas: list[Any] = []
            async with aclosing(created):
                async for chunk in created:
                    deltas += [choice.delta for choice in chunk.choices]
                    if number % 3 == 0 and any(delta.content for delta in deltas):
                        return word  # and leave
            assert "".join(delta.content or "" for delta in deltas) == f"{word} " * 20
            arguments = "".join(call.function.arguments for delta in deltas for call in delta.tool_calls or ())
            return json.loads(arguments)["city"]
        response = await client.responses.create(model=MODEL, input=word, tools=[TOOL])
        assert response.output_text == f"{word} " * 20
        [call] = [item for item in response.output if item.type == "function_call"]
        return json.loads(call.arguments)["city"]

    async with connected(server) as client:
        cities = await asyncio.gather(*(one(client, number) for number in range(30)))
    assert cities == [f"word{number}" for number in range(30)]
    await eventually(lambda: not several.transport.stats().busy)
    assert (await server.post(BODY)).status_code == 200
