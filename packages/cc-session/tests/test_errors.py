"""Error classes: each is ours and the SDK's, has facts as attributes, and survives pickling."""

import pickle
from typing import Any

import claude_agent_sdk as sdk
import pytest

import cc_types
from cc_session import HooksDisabledError, McpServerFailedError, QueueTimeoutError, SessionBusyError, TurnTimeoutError
from cc_session.errors import (
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    MessageParseError,
    ProcessExitedError,
)
from cc_types import ClaudeCodeError

# Our classes with an error's facts, and the SDK's classes.
BOTH: list[tuple[Any, dict[str, Any], type[Exception]]] = [
    (CLIConnectionError, {"reason": "It broke"}, sdk.CLIConnectionError),
    (CLINotFoundError, {"path": "/nowhere"}, sdk.CLINotFoundError),
    (ProcessExitedError, {"exit_code": 7, "stderr_tail": "It broke.", "phase": "turn"}, sdk.ProcessError),
    (CLIJSONDecodeError, {"line": "{bad", "reason": "bad"}, sdk.CLIJSONDecodeError),
    (MessageParseError, {"reason": "bad", "data": {"type": "x"}}, sdk.ClaudeSDKError),
]


@pytest.mark.parametrize(("kind", "facts", "theirs"), BOTH, ids=lambda value: getattr(value, "__name__", ""))
def test_an_error_belongs_to_both_hierarchies_with_our_text(
    kind: Any, facts: dict[str, Any], theirs: type[Exception]
) -> None:
    """SES-69, SES-71."""
    error, ours = kind(**facts), getattr(cc_types, kind.__name__)
    assert isinstance(error, ours)
    assert isinstance(error, theirs)
    assert isinstance(error, sdk.ClaudeSDKError)
    assert str(error) == str(ours(**facts))


@pytest.mark.parametrize(
    "error",
    [
        *(kind(**facts) for kind, facts, _ in BOTH),
        SessionBusyError(),
        HooksDisabledError("it is too old"),
        McpServerFailedError({"a": "It broke."}),
        TurnTimeoutError(limit="silence", seconds=3.0),
        QueueTimeoutError(seconds=1.0, size=2, busy_seconds=[1.5, 2.0], waiting=3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickling(error: ClaudeCodeError) -> None:
    """SES-69, SES-71."""
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), repr(copy), vars(copy)) == (type(error), str(error), repr(error), vars(error))


def test_an_error_has_what_the_sdk_s_class_has() -> None:
    """SES-69."""
    exited = ProcessExitedError(exit_code=7, stderr_tail="It broke.", phase="turn")
    assert (exited.exit_code, exited.stderr) == (7, "It broke.")
    undecoded = CLIJSONDecodeError(line="{bad", reason="why")
    assert (undecoded.line, str(undecoded.original_error)) == ("{bad", "why")
    assert MessageParseError(reason="bad", data={"type": "x"}).data == {"type": "x"}


@pytest.mark.parametrize(
    ("code", "phase", "is_retryable"),
    [(1, "connect", False), (-9, "connect", True), (1, "turn", True), (0, None, True)],
)
def test_whether_it_makes_sense_to_try_again(code: int, phase: str | None, is_retryable: bool) -> None:
    """SES-71."""
    assert ProcessExitedError(exit_code=code, phase=phase).retryable is is_retryable
    assert not CLINotFoundError().retryable
    assert TurnTimeoutError(limit="silence", seconds=3.0).retryable


def test_a_queue_timeout_names_the_figures_and_the_remedy() -> None:
    """SES-87."""
    error = QueueTimeoutError(seconds=60, size=2, busy_seconds=[61.25, 75], waiting=97)
    assert (error.busy_seconds, error.retryable, isinstance(error, TimeoutError)) == ((75, 61.25), True, True)
    assert "within 60 seconds: 2 of 2 processes were busy, the longest for 75.0 seconds, and 97 requests" in str(error)
    assert "`pool=`" in str(error)
    none = QueueTimeoutError(seconds=1, size=2, busy_seconds=[], waiting=1)
    assert "0 of 2 processes were busy, and 1 requests waited" in str(none)
