"""Detection of a silent CLI."""

import json
from typing import Any

import pytest

from cc_session.process.observer import Observer

CALL: dict[str, Any] = {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "toolu_1"}]}}
RESULT: dict[str, Any] = {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]}}
ASK: dict[str, Any] = {"type": "control_request", "request_id": "7", "request": {"subtype": "can_use_tool"}}
DROP: dict[str, Any] = {"type": "control_cancel_request", "request_id": "7"}
# In the SDK's format, and in other possible formats.
ANSWER = json.dumps({"type": "control_response", "response": {"subtype": "success", "request_id": "7", "response": {}}})
OTHER = json.dumps({"type": "control_response", "response": {"response": {"x": "y" * 999}, "request_id": "7"}})


class Clock:
    """A clock that stands still."""

    now = 7.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("cc_session.process.observer.time", clock)
    return clock


@pytest.mark.parametrize(
    ("begin", "end"),
    [(CALL, RESULT), (CALL, {"type": "result"}), (ASK, DROP), (ASK, ANSWER), (ASK, OTHER)],
)
def test_it_is_not_silent_while_it_waits_for_somebody_else(clock: Clock, begin: Any, end: Any) -> None:
    """SES-34."""
    observer = Observer()
    observer.received(begin)
    clock.now += 3
    assert (observer.silent_for(), observer.waited_at()) == (0, 10)

    observer.sent(end) if isinstance(end, str) else observer.received(end)
    clock.now += 3
    assert (observer.silent_for(), observer.waited_at()) == (3, 10)
    assert observer.heard_at == (7 if isinstance(end, str) else 10)
    observer.received({"type": "stream_event"})
    assert observer.waited_at() == 10
