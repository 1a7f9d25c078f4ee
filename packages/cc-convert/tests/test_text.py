from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pytest

from cc_convert import extract_text_from_assistant_message

Frame: TypeAlias = dict[str, object]
Form: TypeAlias = Callable[[Frame], Any]

TEXT: Frame = {"type": "text", "text": "Sunny."}
MORE_TEXT: Frame = {"type": "text", "text": "Take a hat."}
THINKING: Frame = {"type": "thinking", "thinking": "Is it?", "signature": "c2ln"}
TOOL_USE: Frame = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"text": "no"}}


def assistant(*content: Frame) -> Frame:
    return {"type": "assistant", "message": {"model": "m", "content": list(content)}}


def test_texts_are_joined_with_newlines(form: Form) -> None:
    """SDK-US4-1, SDK-FR-003"""
    assert extract_text_from_assistant_message(form(assistant(TEXT, MORE_TEXT))) == "Sunny.\nTake a hat."


def test_thinking_and_tool_use_are_left_out(form: Form) -> None:
    """SDK-US4-2, SDK-FR-003"""
    message = form(assistant(THINKING, TEXT, TOOL_USE, MORE_TEXT))

    assert extract_text_from_assistant_message(message) == "Sunny.\nTake a hat."


def test_without_text_the_text_is_empty(form: Form) -> None:
    """SDK-US4-3"""
    assert extract_text_from_assistant_message(form(assistant(THINKING, TOOL_USE))) == ""
    assert extract_text_from_assistant_message(form(assistant())) == ""


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"type": "assistant", "message": None},
        {"type": "assistant", "message": {"content": "odd"}},
        {"type": "assistant", "message": {"content": [None, {"type": "text"}, {"type": "text", "text": 3}]}},
    ],
)
def test_a_malformed_message_has_no_text(message: Mapping[str, object]) -> None:
    """SDK-DP-2"""
    assert extract_text_from_assistant_message(message) == ""
