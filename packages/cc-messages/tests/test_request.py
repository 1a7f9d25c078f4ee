"""From a body to a plan: what is refused and how, and what becomes of the rest."""

import json
import re
from typing import Any

import pytest

from cc_messages.request import parse_request
from cc_types import APIError

HELLO = [{"role": "user", "content": "Hello."}]
BREAK = {"type": "ephemeral"}


def body(**fields: Any) -> bytes:
    full = {"model": "m", "max_tokens": 9, "messages": HELLO, **fields}
    return json.dumps({name: value for name, value in full.items() if value is not ...}).encode()


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **fields}


def refused(data: bytes) -> str:
    with pytest.raises(APIError) as caught:
        parse_request(data)
    assert caught.value.status == 400
    assert caught.value.error_type == "invalid_request_error"
    return caught.value.message


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": ...}, "model: "),
    ({"model": ""}, "model: "),
    ({"model": 1}, "model: "),
    ({"model": "a\0b"}, "model: "),
    ({"max_tokens": ...}, "max_tokens: "),
    ({"max_tokens": "9"}, "max_tokens: "),
    ({"max_tokens": True}, "max_tokens: "),
    ({"stream": "yes"}, "stream: "),
    ({"system": 1}, "system: "),
    ({"system": ["text"]}, "system.0: "),
    ({"system": [{"type": "image"}]}, "system.0: only text blocks"),
    ({"system": [text("a"), text("b", citations=[{}])]}, "system.1.citations: "),
    ({"tools": [{"name": "f"}, "g"]}, "tools.1: "),
    ({"messages": ...}, "messages: at least one"),
    ({"messages": []}, "messages: at least one"),
    ({"messages": "Hello."}, "messages: at least one"),
    ({"messages": ["Hello."]}, "messages.0: "),
    ({"messages": [{"content": "Hello."}]}, "messages.0.role: "),
    ({"messages": [{"role": "tool", "content": "Hello."}]}, "messages.0.role: must be 'user', 'assistant' or 'system'"),
    ({"messages": [{"role": "user"}]}, "messages.0.content: "),
    ({"messages": [{"role": "user", "content": []}]}, "messages.0.content: must not be empty"),
    ({"messages": [{"role": "user", "content": "a", "name": "Ann"}]}, "messages.0.name: "),
    ({"messages": [*HELLO, {"role": "user", "content": ["a"]}]}, "messages.1.content.0: "),
    ({"thread": {"type": "create"}}, "thread: "),
    ({"betas": "a-1"}, "betas: "),
    ({"betas": [1]}, "betas: "),
]


@pytest.mark.parametrize(("fields", "named"), WRONG)
def test_a_wrong_field_is_refused_by_its_name(fields: dict[str, Any], named: str) -> None:
    """MSG-09."""
    assert re.match(named, refused(body(**fields)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff",
        b'{"max_tokens": NaN}',
        b'{"temperature": 1e999}',
        b'{"system": "\\ud800"}',
        b'{"a": ' * 5_000 + b"1" + b"}" * 5_000,
        b"[" * 100_000,
    ],
    ids=["nothing", "half", "no unicode", "not a number", "infinite", "half a pair", "nested", "nested and open"],
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    assert refused(data).startswith("The request body")


def test_what_is_no_object_is_refused() -> None:
    assert refused(b"[]") == "The request body must be a JSON object"


def test_a_body_is_split_into_launch_key_parameters_and_conversation() -> None:
    """MSG-01, MSG-02, MSG-03."""
    request = parse_request(body(system="Be brief.", stream=True, temperature=0.5, tools=[{"name": "f"}]), "b-2, a-1,")
    assert (request.launch.model, request.launch.system, request.launch.betas) == ("m", "Be brief.", ("a-1", "b-2"))
    assert json.loads(request.parameters) == {"max_tokens": 9, "temperature": 0.5, "tools": [{"name": "f"}]}
    assert [message.blocks() for message in request.messages] == [[text("Hello.")]]
    assert request.stream


def test_equal_parameters_are_equal_texts_whatever_their_order() -> None:
    one = parse_request(body(temperature=0.5, tool_choice={"type": "any", "name": "f"}))
    other = parse_request(body(tool_choice={"name": "f", "type": "any"}, temperature=0.5, top_p=None))
    assert one.parameters == other.parameters


@pytest.mark.parametrize("stream", [None, False, ...])
def test_an_answer_is_whole_unless_a_stream_is_asked_for(stream: Any) -> None:
    assert not parse_request(body(stream=stream)).stream


@pytest.mark.parametrize("system", [None, "", [], ...])
def test_no_system_prompt_is_an_empty_one(system: Any) -> None:
    assert parse_request(body(system=system)).launch.system == ""


def test_several_system_blocks_become_paragraphs() -> None:
    """MSG-07."""
    system = [text("One.", cache_control=BREAK), text("Two.")]
    assert parse_request(body(system=system)).launch.system == "One.\n\nTwo."


def test_cache_breakpoints_are_taken_away_everywhere_but_in_data() -> None:
    """MSG-05, MSG-06."""
    data = {"cache_control": "a field of the tool's"}
    document = {"type": "document", "source": {"type": "content", "content": [text("d", cache_control=BREAK)]}}
    call = {"type": "tool_use", "id": "t", "name": "f", "input": data, "cache_control": BREAK}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [document, text("r", cache_control=BREAK)]}
    messages: list[Any] = [
        {"role": "user", "content": [text("a", cache_control=BREAK), {**document, "cache_control": BREAK}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{**result, "cache_control": BREAK}]},
    ]
    tool = {"name": "f", "input_schema": {"properties": data}, "cache_control": BREAK}
    request = parse_request(body(messages=messages, tools=[tool], cache_control=BREAK))

    bare = {**document, "source": {"type": "content", "content": [text("d")]}}
    assert [message.blocks() for message in request.messages] == [
        [text("a"), bare],
        [{"type": "tool_use", "id": "t", "name": "f", "input": data}],
        [{"type": "tool_result", "tool_use_id": "t", "content": [bare, text("r")]}],
    ]
    assert json.loads(request.parameters)["tools"] == [{"name": "f", "input_schema": {"properties": data}}]
    assert "cache_control" not in json.loads(request.parameters)
