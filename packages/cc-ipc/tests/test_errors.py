"""Every error: its place, its facts, its sentence, and that it travels."""

import copy
import inspect
import pickle

import pytest

import cc_ipc
from cc_ipc import (
    BridgeStartupError,
    InvalidPayloadError,
    InvalidRequestError,
    InvalidToolResultError,
    IPCConnectionError,
    IPCError,
    IPCMessageSizeError,
    IPCToolExecutionError,
    LocalMessageSizeError,
    LocalProtocolError,
    RemoteMessageSizeError,
    RemoteProtocolError,
    SessionStateError,
    SocketPathError,
    ToolNotFoundError,
    TransportUnavailableError,
    UnencodableMessageError,
    UnknownMethodError,
)
from cc_types import ClaudeCodeError

ERRORS: list[IPCError] = [
    IPCError("a sentence"),
    LocalProtocolError("a sentence"),
    RemoteProtocolError("a sentence"),
    IPCConnectionError(path="/s", reason="Gone"),
    IPCMessageSizeError(size=11_000_000, limit=10_000_000),
    LocalMessageSizeError(size=11_000_000, limit=10_000_000),
    RemoteMessageSizeError(size=11_000_000, limit=10_000_000),
    UnencodableMessageError(reason="a set"),
    InvalidPayloadError(size=3, reason="no value"),
    InvalidRequestError(reason="no name"),
    UnknownMethodError(method="list_tools"),
    ToolNotFoundError(name="nope", known=["echo", "wait"]),
    ToolNotFoundError(name="nope", known=[]),
    InvalidToolResultError(reason="it is a str"),
    IPCToolExecutionError(tool="weather", error_type="ValueError", message="no such city"),
    SessionStateError(state="stopped", wanted="start"),
    SocketPathError(path="/s", reason="Something is in the way"),
    TransportUnavailableError(reason="nothing is installed"),
    BridgeStartupError(command=["python", "-m", "x"], reason="It ended"),
    BridgeStartupError(command=["python", "-m", "x"], reason="It ended", stderr_tail="a" * 9_000 + "the cause"),
]


@pytest.mark.parametrize("error", ERRORS, ids=[f"{i}-{type(error).__name__}" for i, error in enumerate(ERRORS)])
def test_an_error_survives_pickle_and_copy(error: IPCError) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)


def test_all_errors_are_tried_here() -> None:
    public = {value for _, value in inspect.getmembers(cc_ipc, inspect.isclass) if issubclass(value, Exception)}
    assert public == {type(error) for error in ERRORS}


def test_every_error_has_the_parent_that_the_data_model_names() -> None:
    """IPC-D-39 to IPC-D-43: all are `IPCError`, which is a `ClaudeCodeError`."""
    assert issubclass(IPCError, ClaudeCodeError)  # IPC-D-39
    assert issubclass(IPCConnectionError, IPCError)  # IPC-D-40
    assert issubclass(IPCMessageSizeError, IPCError)  # IPC-D-41
    assert issubclass(IPCToolExecutionError, IPCError)  # IPC-D-42
    assert issubclass(BridgeStartupError, IPCError)  # IPC-D-43


def test_local_and_remote_faults_are_different_classes() -> None:
    """IPC-P-08: nothing is both."""
    for error in ERRORS:
        assert not (isinstance(error, LocalProtocolError) and isinstance(error, RemoteProtocolError))


def test_sentences_name_the_facts() -> None:
    """IPC-P-18: a message says what happened in a way that one can act on."""
    sentences = [str(error) for error in ERRORS]
    assert sentences[4] == "A message has 11,000,000 bytes, and at most 10,000,000 are allowed. Send less at once."
    assert "announced a message of 11,000,000 bytes" in sentences[6]
    assert sentences[11] == "The tool 'nope' is not known. Known tools: echo, wait."
    assert sentences[12].endswith("Known tools: none.")
    assert sentences[14] == "The tool 'weather' failed with ValueError: no such city"
    assert "It wrote nothing to stderr" in sentences[18]
    assert sentences[19].endswith("the cause")
    assert len(sentences[19]) < 5_000
