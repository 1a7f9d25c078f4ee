"""A stream's bytes: events, their order and fields."""

from typing import Any

import pytest

from cc_loopback.api.events import encode_event, stream_events
from cc_loopback.api.reply import make_message

from .conftest import BODY

STREAMED = {**BODY, "stream": True}
COUNTS = {"input_tokens": 13, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def events_for(reply: Any) -> list[dict[str, Any]]:
    return list(stream_events(make_message(reply, STREAMED, COUNTS)))


def deltas(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["delta"] for event in events if event["type"] == "content_block_delta"]


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        ([], []),
        (
            ["one two", "b"],
            ["start", "ping", "delta", "delta", "stop", "start", "delta", "stop"],
        ),
    ],
    ids=["empty", "two texts"],
)
def test_blocks_are_streamed_in_the_order_of_the_api_with_one_ping(content: list[str], blocks: list[str]) -> None:
    """LOOP-11."""
    kinds = [event["type"] for event in events_for([{"type": "text", "text": text} for text in content])]
    assert [kind.removeprefix("content_block_") for kind in kinds] == [
        "message_start",
        *blocks,
        "message_delta",
        "message_stop",
    ]


CITATION = {"type": "char_location", "cited_text": "x", "document_index": 0}


@pytest.mark.parametrize(
    ("block", "emptied", "pieces"),
    [
        (
            {"type": "thinking", "thinking": "Let me", "signature": "c2ln"},
            {"thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "Let "},
                {"type": "thinking_delta", "thinking": "me"},
                {"type": "signature_delta", "signature": "c2ln"},
            ],
        ),
        (
            {"type": "text", "text": "cited", "citations": [CITATION]},
            {"text": "", "citations": []},
            [{"type": "text_delta", "text": "cited"}, {"type": "citations_delta", "citation": CITATION}],
        ),
        ({"type": "redacted_thinking", "data": "aGlkZGVu"}, {}, []),
        ({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}, {}, []),
    ],
    ids=["thinking", "citations", "hidden thinking", "result"],
)
def test_block_starts_without_its_text_which_follows_in_pieces(
    block: dict[str, Any], emptied: dict[str, Any], pieces: list[dict[str, Any]]
) -> None:
    """LOOP-12: a signature and citations come last, and a block without pieces starts whole."""
    events = events_for([block])
    assert events[1]["content_block"] == {**block, **emptied}
    assert deltas(events) == pieces


def test_usage_of_server_tools_comes_at_the_end_only() -> None:
    usage = {"server_tool_use": {"web_search_requests": 1}}
    container = {"id": "container_1", "expires_at": "2026-01-31T12:00:00Z"}
    reply: dict[str, Any] = {
        "content": "x",
        "usage": usage,
        "container": container,
        "context_management": {"applied_edits": []},
    }
    events = events_for(reply)
    assert "server_tool_use" not in events[0]["message"]["usage"]
    assert events[-2]["usage"]["server_tool_use"] == {"web_search_requests": 1}
    assert events[-2]["delta"]["container"] == container
    assert events[-2]["context_management"] == {"applied_edits": []}


def test_event_is_written_as_utf8_on_one_data_line() -> None:
    assert (
        encode_event({"type": "ping", "text": "é\n"}) == 'event: ping\ndata: {"type":"ping","text":"é\\n"}\n\n'.encode()
    )
