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


@each_error
def test_an_error_has_the_common_base_and_a_message_of_sentences(error: ClaudeCodeError) -> None:
    first_line = str(error).splitlines()[0]

    assert first_line[0].isupper()
    assert first_line.endswith((".", ":"))
    with pytest.raises(ClaudeCodeError):
        raise error


def test_repr_shows_the_facts() -> None:
    assert repr(ControlTimeoutError(subtype="interrupt", seconds=60)) == (
        "ControlTimeoutError(subtype='interrupt', seconds=60)"
    )
    assert repr(ClaudeCodeError("Something else.")) == "ClaudeCodeError('Something else.')"
    assert len(repr(CLIJSONDecodeError(line="x" * 1_000_000, reason="Expecting value"))) < 300


def test_a_missing_cli_is_an_error_with_places_and_advice() -> None:
    error, other = CLINotFoundError(path="/opt/claude"), CLINotFoundError(searched=["/usr/bin", "/usr/local/bin"])

    assert isinstance(error, CLIConnectionError)
    assert "/opt/claude" in str(error)
    assert (error.searched, other.path) == ((), None)
    assert "in /usr/bin, /usr/local/bin." in str(other)
    assert str(CLINotFoundError()).startswith("Claude Code's CLI was not found. Install")


def test_an_exited_process_reports_code_phase_and_stderr() -> None:
    """SDK-ADD-04: the exit code and the end of stderr."""
    error = ProcessExitedError(exit_code=1, stderr_tail="no such option: --bare\n", phase="initialize")

    assert isinstance(error, CLIConnectionError)
    assert (error.exit_code, error.phase, error.signal) == (1, "initialize", None)
    assert "exited with code 1 during initialize" in str(error)
    assert str(error).endswith("no such option: --bare")


def test_only_the_tail_of_stderr_is_kept() -> None:
    """SDK-ADD-04"""
    error = ProcessExitedError(exit_code=1, stderr_tail="debug\n" * 10_000 + "the cause")

    assert len(error.stderr_tail) == 4_000
    assert error.stderr_tail.endswith("the cause")


@pytest.mark.parametrize(
    ("exit_code", "signal", "phrases"),
    [
        *((code, "SIGKILL", ["was ended by SIGKILL", "memory"]) for code in (-9, 137)),
        *((code, None, [f"exited with code {code}"]) for code in (0, 1, 127, 128, 255)),
        (None, None, ["Claude Code exited. It wrote nothing to stderr"]),
    ],
)
def test_an_exit_code_names_a_known_signal(exit_code: int | None, signal: str | None, phrases: list[str]) -> None:
    error = ProcessExitedError(exit_code=exit_code)

    assert error.signal == signal
    assert all(words in str(error) for words in phrases)


def test_an_invalid_json_line_is_quoted_in_part() -> None:
    """SDK-ADD-04: the raw line is a fact, the message only quotes it."""
    line = "Traceback " * 1_000

    error = CLIJSONDecodeError(line=line, reason="Expecting value")

    assert error.line == line
    assert len(str(error)) < 400
    assert "10000 characters" in str(error)
    assert "'Segmentation fault'" in str(CLIJSONDecodeError(line="Segmentation fault", reason="Expecting value"))


def test_an_unreadable_message_is_kept_as_data() -> None:
    """SDK-ADD-04: the raw data."""
    error = MessageParseError(reason="the field subtype is missing", data={"type": "result"})

    assert error.data == {"type": "result"}
    assert "the field subtype is missing" in str(error)


def test_a_control_timeout_is_a_timeout_error() -> None:
    with pytest.raises(TimeoutError, match=r"'interrupt' within 60 seconds"):
        raise ControlTimeoutError(subtype="interrupt", seconds=60.0)


def test_a_rejected_control_request_has_the_answer_of_the_cli() -> None:
    error = ControlRequestError(subtype="rewind_conversation", message="A turn is running.")

    assert error.message == "A turn is running."
    assert "'rewind_conversation': A turn is running. Send it" in str(error)
