"""Error classes: each survives pickling, and has what the SDK's class has."""

import pickle
from typing import Any

import claude_agent_sdk as sdk
import pytest

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
