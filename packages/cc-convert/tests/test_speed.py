"""What a conversion costs, counted in calls, which do not depend on the machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeAlias

from cc_convert import convert_sdk_messages_to_cli_response

Frame: TypeAlias = dict[str, Any]


def calls(messages: list[Frame]) -> int:
    """How many functions a conversion calls, of Python and of C."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        convert_sdk_messages_to_cli_response(messages)
    finally:
        sys.setprofile(before)
    return count


def test_conversion_makes_few_calls_and_for_a_longer_turn_no_more_than_that_many_times_as_many(
    recorded: Callable[[str], list[Frame]],
) -> None:
    """SDK-ADD-14: times are measured by `scripts/bench/convert.py`; there 185 and 292 calls keep the bounds."""
    *messages, result = recorded("tool_call")[-5:]
    without_text = {**result, "result": None}
    convert_sdk_messages_to_cli_response([*messages, result])  # what is made once

    assert calls([*messages, result]) < 230
    assert calls([*messages, without_text]) < 360
    assert calls([*messages * 100, without_text]) <= 10 * calls([*messages * 10, without_text])
