"""When two messages are the same, and what two conversations share."""

from typing import Any

import pytest

from cc_messages.conversation import Held, Message, merged, shared_prefix

BREAK = {"type": "ephemeral"}


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **fields}


def user(*blocks: dict[str, Any]) -> Message:
    return Message("user", blocks)


def call(**fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t", "name": "f", "input": {}, **fields}


def result(content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t", "content": content, **fields}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text("a"), {"text": "a", "type": "text"}),
        (text("a"), text("a", citations=None)),
        (text("a"), text("a", cache_control=BREAK)),
        (result("a"), result([text("a")])),
        (result([text("a")]), result([text("a", cache_control=BREAK)], cache_control=BREAK)),
        (call(), call(caller={"type": "direct"})),
    ],
)
def test_messages_that_the_api_reads_alike_are_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    """MSG-05, MSG-06."""
    assert user(one) == user(other)
    assert hash(user(one)) == hash(user(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (text("a"), text("a ")),
        (text("a"), text("a", citations=[])),
        (result("a"), result("a", is_error=False)),
        (result("a"), result([text("a"), text("")])),
        (call(input={"x": None}), call(input={})),
        (call(input={"cache_control": 1}), call(input={})),
        (call(input={"x": 1}), call(input={"x": True})),
        (call(), call(caller={"type": "code"})),
    ],
)
def test_messages_that_the_api_reads_otherwise_differ(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert user(one) != user(other)


def test_the_same_words_of_another_role_differ() -> None:
    assert Message("user", (text("a"),)) != Message("assistant", (text("a"),))


def test_neighbours_of_one_role_become_one_message() -> None:
    answer = Message("assistant", (text("x"),))
    assert merged([user(text("a")), user(text("b")), answer, user(text("c"))]) == (
        user(text("a"), text("b")),
        answer,
        user(text("c")),
    )


def test_a_conversation_shares_what_it_begins_with() -> None:
    held = [Held(user(text(word)), word, is_cut=True) for word in "abc"]
    assert shared_prefix(held, []) == 0
    assert shared_prefix(held, [user(text("a")), user(text("x")), user(text("c"))]) == 1
    assert shared_prefix(held, [user(text(word)) for word in "abcd"]) == 3


def test_calls_and_results_are_seen_among_other_blocks() -> None:
    assert Message("assistant", (text("a"), call())).calls_tools
    assert user(result("a"), text("b")).answers_tools
    assert not user(text("a")).answers_tools
    assert not Message("assistant", (text("a"),)).calls_tools
