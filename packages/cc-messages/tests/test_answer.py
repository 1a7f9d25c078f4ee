"""A stream's events, joined into a message."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cc_messages.api.response import Answer, Event, sse

Block = dict[str, Any]

START = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
USAGE = {"input_tokens": 7, "output_tokens": 3}

words = st.text(max_size=20)
data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
citations = st.lists(
    st.fixed_dictionaries({"type": st.just("page_location"), "cited_text": words}), min_size=1, max_size=2
)
blocks = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": words}),
    st.fixed_dictionaries({"type": st.just("text"), "text": words, "citations": citations}),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": words, "signature": words}),
    st.fixed_dictionaries({"type": st.just("redacted_thinking"), "data": words}),
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["tool_use", "server_tool_use"]),
            "id": words,
            "name": words,
            "input": st.dictionaries(words, data, max_size=3),
        }
    ),
    st.fixed_dictionaries({"type": st.just("web_search_tool_result"), "tool_use_id": words, "content": st.just([])}),
)
messages = st.fixed_dictionaries(
    {
        "content": st.lists(blocks, max_size=4),
        "stop_reason": st.sampled_from(["end_turn", "tool_use", "max_tokens"]),
        "stop_sequence": st.none() | words,
    }
)


def pieces(source: st.DataObject, text: str) -> list[str]:
    """Return any cut of a text, empty pieces included."""
    cuts = sorted(source.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def deltas(source: st.DataObject, block: Block) -> tuple[Block, list[Block]]:
    """Return a block's beginning and completion."""
    match block["type"]:
        case "text":
            parts = [{"type": "text_delta", "text": piece} for piece in pieces(source, block["text"])]
            parts += [{"type": "citations_delta", "citation": citation} for citation in block.get("citations", [])]
            return {**block, "text": "", **({"citations": []} if "citations" in block else {})}, parts
        case "thinking":
            parts = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(source, block["thinking"])]
            parts.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, parts
        case "tool_use" | "server_tool_use":
            written = json.dumps(block["input"])
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in pieces(source, written)
            ]
        case _:
            return block, []


def events(source: st.DataObject, message: dict[str, Any]) -> Iterator[Event]:
    usage = {**USAGE, "output_tokens": 1}
    yield {"type": "message_start", "message": {**START, "content": [], "stop_reason": None, "usage": usage}}
    for index, block in enumerate(message["content"]):
        begun, parts = deltas(source, block)
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for part in parts:
            yield {"type": "ping"}
            yield {"type": "content_block_delta", "index": index, "delta": part}
        yield {"type": "content_block_stop", "index": index}
    end = {name: message[name] for name in ("stop_reason", "stop_sequence")}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 3}}
    yield {"type": "message_stop"}


def fed(*stream: Event) -> Answer:
    answer = Answer()
    for event in stream:
        answer.feed(event)
    return answer


@given(st.data(), messages)
def test_a_stream_cut_anywhere_becomes_the_message_it_was(source: st.DataObject, message: dict[str, Any]) -> None:
    """MSG-20"""
    answer = fed(*events(source, message))
    assert answer.as_json() == {**START, **message, "usage": USAGE}
    assert answer.is_complete
    assert answer.stop_reason == message["stop_reason"]
    blocks = [block for block in message["content"] if block.get("text") != ""]
    assert answer.content == blocks


def block_of(*deltas: Block, kind: Block | None = None) -> list[Event]:
    started: Block = kind or {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    return [
        {"type": "message_start", "message": START},
        {"type": "content_block_start", "index": 0, "content_block": started},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


def test_a_compaction_has_the_fields_of_its_delta() -> None:
    """MSG-20: such blocks come in a single piece."""
    summary: Block = {"content": "They said hello.", "encrypted_content": "c2ln"}
    started: Block = {"type": "compaction", "content": None}
    answer = fed(*block_of({"type": "compaction_delta", **summary}, kind=started))
    assert answer.as_json()["content"] == [{"type": "compaction", **summary}]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", {}),
        ('{"city": "Par', {}),
        ('{"city": "Paris", "day', {"city": "Paris"}),
        ('{"days": [1, 2', {"days": [1, 2]}),
        ("Paris", {"INVALID_JSON": "Paris"}),
    ],
)
def test_an_input_that_was_cut_off_is_what_was_complete(written: str, read: Any) -> None:
    answer = fed(*block_of({"type": "input_json_delta", "partial_json": written}))
    assert answer.as_json()["content"] == [{"type": "tool_use", "id": "t", "name": "f", "input": read}]


def test_an_input_that_came_with_its_start_is_kept() -> None:
    whole = {"type": "server_tool_use", "id": "t", "name": "f", "input": {"query": "q"}}
    assert fed(*block_of(kind=whole)).as_json()["content"] == [whole]


def test_unknown_events_and_deltas_change_nothing() -> None:
    answer = fed(*block_of({"type": "odour_delta", "smell": "roses"}), {"type": "weather"})
    assert answer.as_json()["content"] == [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]


def test_a_stream_that_ends_without_a_reason_is_not_complete() -> None:
    """MSG-E07: the CLI closes a stream that the API has cut, without a reason."""
    made_up = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {}}
    answer = fed({"type": "message_start", "message": START}, made_up, {"type": "message_stop"})
    assert answer.has_begun
    assert not answer.is_complete


def test_events_do_not_change_what_was_fed() -> None:
    stream = block_of({"type": "input_json_delta", "partial_json": '{"a": 1}'})
    before = json.dumps(stream)
    fed(*stream, *stream[2:])
    assert json.dumps(stream) == before


@pytest.mark.parametrize("text", ["a\n\nb", "\u2028", "\x85", "ü", "\U0001f600", "\ud83d"])
def test_an_event_is_written_with_its_kind_and_without_line_breaks(text: str) -> None:
    event = {"type": "content_block_delta", "delta": {"text": text}}
    written = sse(event)
    assert written.isascii()
    head, payload, *rest = written.decode().split("\n")
    assert head == "event: content_block_delta"
    assert json.loads(payload.removeprefix("data: ")) == event
    assert rest == ["", ""]
