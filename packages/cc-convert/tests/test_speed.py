"""The cost of a conversion and of reading a log, counted in calls, which do not depend on the machine."""

import sys
from collections.abc import Callable
from io import BytesIO
from types import FrameType
from typing import Any, TypeAlias

from cc_convert import convert_sdk_messages_to_cli_response
from cc_convert.log_files.scan import scan_stream

Frame: TypeAlias = dict[str, Any]


def calls_of(work: Callable[[], object], name: str = "") -> int:
    """Count the called functions, in Python and C; with a name, the C functions under this name."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if name:
            count += event == "c_call" and getattr(argument, "__name__", "") == name
        else:
            count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_a_conversion_validates_once_and_grows_with_the_turn(recorded: Callable[[str], list[Frame]]) -> None:
    """SDK-ADD-14: `scripts/bench/convert.py` measures the times."""
    *messages, result = recorded("tool_call")[-5:]
    without_text = {**result, "result": None}
    convert_sdk_messages_to_cli_response([*messages, result])  # created once

    def calls(turn: list[Frame], name: str = "") -> int:
        return calls_of(lambda: convert_sdk_messages_to_cli_response(turn), name)

    assert calls([*messages, result], "validate_python") == 1
    assert calls([*messages * 100, result]) <= 10 * calls([*messages * 10, result])
    assert calls([*messages * 100, without_text]) <= 10 * calls([*messages * 10, without_text])


def test_only_the_first_line_of_each_answer_is_decoded(log: Any) -> None:
    """LOG-54: `scripts/bench/logs.py` measures the times."""
    answers = 5
    for number in range(answers):
        log.user("Hi")
        log.lines.append({"type": "api-request", "params": {"max_tokens": 64000}, "sessionId": "s1"})
        log.lines.append({"parentUuid": None, "attachment": {"type": "date"}, "type": "attachment"})
        log.answer(f"msg_{number}")
        log.answer(f"msg_{number}", content=[{"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}])
        log.lines.append({"type": "last-prompt", "lastPrompt": "Hi", "sessionId": "s1"})
    content = log.text()
    scan_stream(BytesIO(content), "log.jsonl")  # created once

    assert calls_of(lambda: scan_stream(BytesIO(content), "log.jsonl"), "validate_json") == answers
