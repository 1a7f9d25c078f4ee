from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pytest

from cc_convert import extract_text_from_assistant_message

Frame: TypeAlias = dict[str, object]

TEXT: Frame = {"type": "text", "text": "Sunny."}
MORE_TEXT: Frame = {"type": "text", "text": "Take a hat."}
THINKING: Frame = {"type": "thinking", "thinking": "Is it?", "signature": "c2ln"}
TOOL_USE: Frame = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"text": "no"}}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([TEXT, MORE_TEXT], "Sunny.\nTake a hat."),
        ([THINKING, TEXT, TOOL_USE, MORE_TEXT], "Sunny.\nTake a hat."),
        ([THINKING, TOOL_USE], ""),
        ([], ""),
    ],
    ids=["texts", "texts among others", "others", "nothing"],
)
def test_texts_alone_are_taken_and_joined_with_newlines(
    form: Callable[[Frame], Any], content: list[Frame], text: str
) -> None:
    """SDK-US4-1, SDK-US4-2, SDK-US4-3"""
    message = form({"type": "assistant", "message": {"model": "m", "content": content}})

    assert extract_text_from_assistant_message(message) == text


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"type": "assistant", "message": None},
        {"type": "assistant", "message": {"content": "odd"}},
        {"type": "assistant", "message": {"content": [None, {"type": "text"}, {"type": "text", "text": 3}]}},
    ],
    ids=["empty", "no message", "no list", "no blocks"],
)
def test_a_malformed_message_has_no_text(message: Mapping[str, object]) -> None:
    """SDK-EC-1"""
    assert extract_text_from_assistant_message(message) == ""
