import copy
import pickle
from collections.abc import Callable

import pytest

from cc_types import (
    APIError,
    ClaudeCodeError,
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    ControlRequestError,
    ControlTimeoutError,
    MessageParseError,
    ProcessExitedError,
)


class RefusedByPolicyError(ControlTimeoutError):
    """An error in another package, with its own constructor."""

    def __init__(self, tool: str, *, rule: int) -> None:
        super().__init__(subtype=f"policy {tool}", seconds=1.5)
        self.rule = rule


ERRORS: list[ClaudeCodeError] = [
    ClaudeCodeError("Something else."),
    CLIConnectionError(reason="The pipe to Claude Code is closed"),
    CLINotFoundError(path="/opt/claude"),
    CLINotFoundError(searched=["/usr/bin", "/usr/local/bin"]),
    ProcessExitedError(exit_code=1, stderr_tail="no such option: --bare\n", phase="initialize"),
    ProcessExitedError(exit_code=None),
    CLIJSONDecodeError(line="Segmentation fault", reason="Expecting value"),
    MessageParseError(reason="the field subtype is missing", data={"type": "result", "usage": [1, None]}),
    ControlTimeoutError(subtype="interrupt", seconds=60),
    ControlRequestError(subtype="rewind_conversation", message="A turn is running."),
    APIError(status=529, message="Overloaded", request_id="req_1", retry_after=2.0),
    RefusedByPolicyError("Bash", rule=3),
]
each_error = pytest.mark.parametrize(
    "error", ERRORS, ids=[f"{index}-{type(error).__name__}" for index, error in enumerate(ERRORS)]
)


def pickled(error: ClaudeCodeError) -> ClaudeCodeError:
    return pickle.loads(pickle.dumps(error))


@each_error
@pytest.mark.parametrize("clone", [pickled, copy.copy, copy.deepcopy])
def test_a_clone_is_the_same_error(error: ClaudeCodeError, clone: Callable[[ClaudeCodeError], ClaudeCodeError]) -> None:
    """SDK-ADD-04: errors cross processes with all their facts."""
    same = clone(error)

    assert type(same) is type(error)
    assert same is not error
    assert (str(same), repr(same), same.args, vars(same)) == (str(error), repr(error), error.args, vars(error))


def test_notes_survive_pickling() -> None:
    """SDK-ADD-04"""
    error = CLINotFoundError(path="/opt/claude")
    error.add_note("while warming the pool")

    assert pickled(error).__notes__ == ["while warming the pool"]
    assert "warming" not in repr(error)


def test_a_control_timeout_is_a_timeout_error() -> None:
    with pytest.raises(TimeoutError, match=r"'interrupt' within 60 seconds"):
        raise ControlTimeoutError(subtype="interrupt", seconds=60.0)


def test_a_rejected_control_request_has_the_answer_of_the_cli() -> None:
    error = ControlRequestError(subtype="rewind_conversation", message="A turn is running.")

    assert error.message == "A turn is running."
    assert "'rewind_conversation': A turn is running. Send it" in str(error)
