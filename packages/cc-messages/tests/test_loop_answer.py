"""Folding a loop into a single message and unfolding it again, without a CLI."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cc_messages.api.conversation import HistoryMessage
from cc_messages.api.folding import unfolded
from cc_messages.api.response import Answer, Event
from cc_messages.context import CLAUDE_CODE_SERVER
from cc_messages.loop.answer import LoopAnswer

DONE: dict[str, Any] = {"type": "text", "text": "Done."}
NAMES = st.sampled_from(["mcp__tools__add", "mcp__tools__sub", "mcp__files__read_it", "Bash"])


def events(content: list[dict[str, Any]], stop_reason: str | None, **usage: Any) -> list[Event]:
    """Return an API message as a stream, each block in a single piece."""
    stream: list[Event] = [{"type": "message_start", "message": {"id": "msg", "role": "assistant", "usage": usage}}]
    for index, block in enumerate(content):
        stream.append({"type": "content_block_start", "index": index, "content_block": block})
        stream.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": stop_reason}
    return [*stream, {"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


def call(number: int, name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {"n": number}}


def result(number: int, *, is_error: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"result {number}"}
    return {**block, "is_error": True} if is_error else block


def loop(*own: str) -> LoopAnswer:
    return LoopAnswer(Answer(), "tools", {f"mcp__tools__{name}": name for name in own}, {})


def test_a_result_that_comes_before_its_message_ends_follows_all_calls_of_the_message() -> None:
    """MSG-62"""
    answer = LoopAnswer(Answer(), "caller", {}, {"stock": "stock"})
    *start, delta, stop = events([call(1, "Bash"), call(2, "stock")], "tool_use")
    feed(answer, start[:3])
    answer.feed_results([result(1)])
    feed(answer, [*start[3:], delta, stop])
    assert [block["type"] for block in answer.message.content] == ["mcp_tool_use", "tool_use", "mcp_tool_result"]


def feed(answer: LoopAnswer, api_events: list[Event]) -> list[Event]:
    return [out for event in api_events for out in answer.feed(event)]


@given(st.lists(st.lists(st.tuples(NAMES, st.booleans()), min_size=1, max_size=3), max_size=4))
def test_a_folded_loop_unfolds_to_the_same_conversation(steps: list[list[tuple[str, bool]]]) -> None:
    answer = loop("add", "sub")
    output: list[Event] = []
    conversation: list[HistoryMessage] = []
    number = 0
    for step in steps:
        numbered = [(number + index, name, fails) for index, (name, fails) in enumerate(step)]
        number += len(step)
        content: list[dict[str, Any]] = [
            {"type": "text", "text": "Let me see."},
            *(call(index, name) for index, name, _ in numbered),
        ]
        output += feed(answer, events(content, "tool_use"))
        results = [result(index, is_error=fails) for index, _, fails in numbered]
        for given_back in results:
            output += answer.feed_results([given_back])
        conversation += [HistoryMessage("assistant", tuple(content)), HistoryMessage("user", tuple(results))]
    assert not answer.message.is_complete
    output += feed(answer, events([DONE], "end_turn"))
    assert answer.message.is_complete
    assert [event["type"] for event in output].count("message_stop") == 1
    assert unfolded(HistoryMessage("assistant", tuple(answer.message.content))) == [
        *conversation,
        HistoryMessage("assistant", (DONE,)),
    ]


@given(st.lists(NAMES, min_size=1, max_size=4), st.data())
def test_indices_of_blocks_are_told_in_order_and_once(names: list[str], data: st.DataObject) -> None:
    """Results may come before the answer that calls the tools has ended."""
    answer = loop("add", "sub")
    output: list[Event] = []
    waiting: list[int] = []
    for event in events([call(index, name) for index, name in enumerate(names)], "tool_use"):
        output += answer.feed(event)
        if event["type"] == "content_block_stop":
            waiting.append(event["index"])
        if waiting and data.draw(st.booleans()):
            output += answer.feed_results([result(waiting.pop(0))])
    for number in waiting:
        output += answer.feed_results([result(number)])
    started = [event["index"] for event in output if event["type"] == "content_block_start"]
    assert started == [*range(2 * len(names))]


def test_an_answer_with_a_callers_call_waits_for_the_other_results() -> None:
    answer = LoopAnswer(Answer(), "tools", {"mcp__tools__add": "add"}, {"mcp__tools__ask": "ask"})
    output = feed(answer, events([call(1, "mcp__tools__add"), call(2, "mcp__tools__ask")], "tool_use"))
    assert not answer.message.is_complete
    output += answer.feed_results([result(1)])
    assert answer.message.is_complete
    assert answer.message.calls_tools
    assert [event["type"] for event in output][-2:] == ["message_delta", "message_stop"]


@pytest.mark.parametrize(
    ("names", "answered", "is_held_up", "calls_api"),
    [
        (["mcp__tools__ask", "Bash"], [], True, False),
        (["Bash", "mcp__tools__ask"], [], True, False),
        (["Bash", "mcp__tools__ask"], [0], False, False),
        (["mcp__tools__ask", "Agent"], [], False, True),
        (["mcp__tools__ask", "Agent", "Bash"], [], False, True),
        (["mcp__tools__ask", "Agent", "Bash"], [1], True, False),
        (["mcp__tools__ask", "Bash", "Agent"], [], True, True),
        (["Bash", "Agent"], [], False, True),
    ],
)
def test_calls_that_may_wait_for_one_that_ends_the_answer_are_known(
    names: list[str], answered: list[int], is_held_up: bool, calls_api: bool
) -> None:
    """MSG-63: a sub-agent runs beside the caller's calls, if nothing in between runs alone."""
    answer = LoopAnswer(Answer(), "tools", {}, {"mcp__tools__ask": "ask"})
    feed(answer, events([call(index, name) for index, name in enumerate(names)], "tool_use"))
    answer.feed_results([result(index) for index in answered])
    assert (answer.is_held_up, answer.calls_api) == (is_held_up, calls_api)


@pytest.mark.parametrize("stop_reason", ["max_tokens", "refusal", "end_turn"])
def test_only_a_call_goes_on(stop_reason: str) -> None:
    """A single answer keeps the API's usage, and nothing follows the end."""
    answer = loop("add")
    output = feed(answer, events([DONE], stop_reason, input_tokens=3))
    assert answer.message.is_complete
    assert answer.message.stop_reason == stop_reason
    assert output[-2]["usage"] == {"input_tokens": 3}
    assert not answer.feed_results([result(1)])


def test_an_answer_that_the_cli_has_closed_has_stopped_early() -> None:
    answer = loop("add")
    feed(answer, events([{"type": "text", "text": "Hel"}], None))
    step = answer.last_step
    assert step is not None and step.has_ended and not step.answer.is_complete
    assert not answer.message.is_complete


def test_sums_go_into_objects_and_keep_what_is_no_number() -> None:
    answer = loop("add")
    one: dict[str, Any] = {"input_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 2}, "service_tier": "a"}
    other: dict[str, Any] = {"input_tokens": 4, "cache_creation": {"ephemeral_5m_input_tokens": 5}, "service_tier": "b"}
    feed(answer, events([call(1, "mcp__tools__add")], "tool_use", **one))
    answer.feed_results([result(1)])
    output = feed(answer, events([DONE], "end_turn", **other))
    usage = output[-2]["usage"]
    assert usage["input_tokens"] == 5
    assert usage["cache_creation"] == {"ephemeral_5m_input_tokens": 7}
    assert usage["service_tier"] == "b"
    assert len(usage["iterations"]) == 2


def test_tools_of_the_cli_stand_under_a_server_of_its_own() -> None:
    answer = loop("add")
    output = feed(answer, events([call(1, "Bash"), call(2, "mcp__files__read__all")], "tool_use"))
    blocks = [event["content_block"] for event in output if event["type"] == "content_block_start"]
    assert [(block["server_name"], block["name"]) for block in blocks] == [
        (CLAUDE_CODE_SERVER, "Bash"),
        ("files", "read__all"),
    ]


def test_a_picture_in_a_result_travels_as_text_and_comes_back() -> None:
    answer = loop("add")
    feed(answer, events([call(1, "mcp__tools__add")], "tool_use"))
    picture: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
    shown: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [picture]}
    answer.feed_results([shown])
    feed(answer, events([DONE], "end_turn"))
    (result_block,) = [block for block in answer.message.content if block["type"] == "mcp_tool_result"]
    assert isinstance(result_block["content"], list)
    assert isinstance(result_block["content"][0], dict)
    assert result_block["content"][0]["type"] == "text"
    assert unfolded(HistoryMessage("assistant", tuple(answer.message.content)))[1] == HistoryMessage("user", (shown,))


USED: dict[str, Any] = {"type": "mcp_tool_use", "id": "toolu_1", "name": "n", "server_name": "s", "input": {}}


@pytest.mark.parametrize(
    "message",
    [
        HistoryMessage(
            "assistant",
            ({**USED, "id": "mcptoolu_1"}, {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": []}),
        ),
        HistoryMessage("user", (USED,)),
    ],
    ids=["of the API's own MCP servers", "of the user"],
)
def test_other_blocks_are_never_unfolded(message: HistoryMessage) -> None:
    assert unfolded(message) == [message]
