"""Error classes: each is ours and the SDK's, carries its facts, and survives pickling."""

import pickle
from collections.abc import Callable
from typing import Any

import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk import ClaudeAgentOptions

import cc_types
from cc_session import (
    HooksDisabledError,
    McpServerFailedError,
    QueueTimeoutError,
    Session,
    SessionBusyError,
    TurnTimeoutError,
    UnknownToolCallError,
)
from cc_session.errors import (
    CLIConnectionError,
    CLIJSONDecodeError,
    CLINotFoundError,
    MessageParseError,
    ProcessExitedError,
)
from cc_types import ClaudeCodeError

FakeCLI = Callable[[str], ClaudeAgentOptions]

BOTH: list[tuple[ClaudeCodeError, type[Exception], type[Exception]]] = [
    (CLIConnectionError(reason="It broke"), cc_types.CLIConnectionError, sdk.CLIConnectionError),
    (CLINotFoundError(path="/nowhere"), cc_types.CLINotFoundError, sdk.CLINotFoundError),
    (
        ProcessExitedError(exit_code=7, stderr_tail="It broke.", phase="turn"),
        cc_types.ProcessExitedError,
        sdk.ProcessError,
    ),
    (CLIJSONDecodeError(line="{bad", reason="bad"), cc_types.CLIJSONDecodeError, sdk.CLIJSONDecodeError),
    (MessageParseError(reason="bad", data={"type": "x"}), cc_types.MessageParseError, sdk.ClaudeSDKError),
]


@pytest.mark.parametrize(("error", "ours", "theirs"), BOTH, ids=lambda value: getattr(value, "__name__", None))
def test_an_error_is_ours_and_the_sdk_s(error: ClaudeCodeError, ours: type[Exception], theirs: type[Exception]) -> None:
    """SES-69."""
    assert isinstance(error, ours)
    assert isinstance(error, theirs)
    assert isinstance(error, sdk.ClaudeSDKError)
    assert type(error).__name__ == ours.__name__


@pytest.mark.parametrize(("error", "ours", "theirs"), BOTH, ids=lambda value: getattr(value, "__name__", None))
def test_an_error_says_what_it_says_as_ours_and_survives_pickling(
    error: ClaudeCodeError, ours: type[Exception], theirs: type[Exception]
) -> None:
    """SES-71."""
    plain: Any = ours
    assert str(error) == str(plain(**{name: fact for name, fact in vars(error).items() if name in _arguments(error)}))

    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), repr(copy), vars(copy)) == (type(error), str(error), repr(error), vars(error))


@pytest.mark.parametrize(
    "error",
    [
        SessionBusyError(),
        UnknownToolCallError(call_id="toolu_1"),
        HooksDisabledError("it is too old"),
        McpServerFailedError({"a": "It broke."}),
        TurnTimeoutError(limit="silence", seconds=3.0),
        QueueTimeoutError(seconds=1.0, size=2, busy_seconds=[1.5, 2.0], waiting=3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_our_own_survive_pickling(error: ClaudeCodeError) -> None:
    """SES-69, SES-71."""
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def _arguments(error: ClaudeCodeError) -> set[str]:
    names = {"CLIConnectionError": {"reason"}, "CLINotFoundError": {"path"}, "CLIJSONDecodeError": {"line", "reason"}}
    return names.get(type(error).__name__, {"exit_code", "stderr_tail", "phase", "reason", "data"} - _not_for(error))


def _not_for(error: ClaudeCodeError) -> set[str]:
    return {"reason"} if isinstance(error, ProcessExitedError) else {"exit_code", "stderr_tail", "phase"}


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


def test_a_queue_that_is_too_long_is_told_with_its_figures_and_the_way_out() -> None:
    """SES-87."""
    error = QueueTimeoutError(seconds=60, size=2, busy_seconds=[61.25, 75], waiting=97)
    assert (error.busy_seconds, error.retryable, isinstance(error, TimeoutError)) == ((75, 61.25), True, True)
    assert "within 60 seconds: 2 of 2 processes were busy, the longest for 75.0 seconds, and 97 requests" in str(error)
    assert "`pool=`" in str(error)
    none = QueueTimeoutError(seconds=1, size=2, busy_seconds=[], waiting=1)
    assert "0 of 2 processes were busy, and 1 requests waited" in str(none)


EXITS = {
    "connect": "sys.exit(3)",
    "turn": "initialize()\nsys.stdin.readline()\nsys.exit(3)",
    "control": "initialize()\nsys.stdin.readline()\nsys.exit(3)",
}


@pytest.mark.parametrize("phase", [*EXITS])
async def test_an_exit_says_in_which_phase_it_came(fake_cli: FakeCLI, phase: str) -> None:
    """SES-70, SES-71: and is caught as the SDK's error, too."""
    options = fake_cli("print('It broke.', file=sys.stderr)\n" + EXITS[phase])
    with pytest.raises(sdk.ProcessError) as raised:
        async with await Session.open(options) as session:
            await (session.run("Hello?") if phase == "turn" else session.control("get_settings"))

    error = raised.value
    assert isinstance(error, cc_types.ProcessExitedError)
    assert (error.exit_code, error.phase, error.stderr_tail) == (3, phase, "It broke.")
