"""Folding a loop into a single message and unfolding it again, without a CLI."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cc_messages.api.conversation import HistoryMessage
from cc_messages.api.folding import unfolded
from cc_messages.api.response import Answer, Event
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


@pytest.mark.parametrize("names", [["add", "ask"], ["ask", "add"]])
def test_an_answer_with_a_callers_call_has_no_call_that_the_cli_makes(names: list[str]) -> None:
    """MSG-60: in order, also if the call that ends the answer comes last."""
    answer = LoopAnswer(Answer(), "tools", {"mcp__tools__add": "add"}, {"mcp__tools__ask": "ask"})
    content = [call(index, f"mcp__tools__{name}") for index, name in enumerate(names)]
    output = feed(answer, events([content[0], DONE, content[1]], "tool_use"))
    assert [block.get("name", block["type"]) for block in answer.message.content] == [names[0], "text", names[1]]
    assert all(block["type"] != "mcp_tool_use" for block in answer.message.content)
    assert [answer.is_held(f"toolu_{index}") for index in range(3)] == [True, True, False]
    assert answer.take_step() is None
    assert answer.message.is_complete
    assert [event["type"] for event in output][-2:] == ["message_delta", "message_stop"]


def test_a_text_beside_a_call_whose_form_is_open_comes_after_it() -> None:
    """MSG-61: all of an API call has come when it has ended."""
    answer = LoopAnswer(Answer(), "tools", {"mcp__tools__add": "add"}, {"mcp__tools__ask": "ask"})
    *start, delta, stop = events([DONE, call(1, "mcp__tools__add"), DONE], "tool_use")
    assert [event["type"] for event in feed(answer, start)][1:] == ["content_block_start", "content_block_stop"]
    feed(answer, [delta, stop])
    assert [block["type"] for block in answer.message.content] == ["text", "mcp_tool_use", "text"]
    assert not answer.is_held("toolu_1")


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
