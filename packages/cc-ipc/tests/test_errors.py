"""Every error: its place, its facts, its sentence, and that it travels."""

import copy
import inspect
import pickle

import pytest

import cc_ipc
from cc_types import ClaudeCodeError

ERRORS: list[cc_ipc.IPCError] = [
    cc_ipc.IPCError("a sentence"),
    cc_ipc.LocalProtocolError("a sentence"),
    cc_ipc.RemoteProtocolError("a sentence"),
    cc_ipc.IPCConnectionError(path="/s", reason="Gone"),
    cc_ipc.IPCMessageSizeError(size=11_000_000, limit=10_000_000),
    cc_ipc.LocalMessageSizeError(size=11_000_000, limit=10_000_000),
    cc_ipc.RemoteMessageSizeError(size=11_000_000, limit=10_000_000),
    cc_ipc.UnencodableMessageError(reason="a set"),
    cc_ipc.InvalidPayloadError(size=3, reason="no value"),
    cc_ipc.InvalidRequestError(reason="no name"),
    cc_ipc.UnknownMethodError(method="list_tools"),
    cc_ipc.ToolNotFoundError(name="nope", known=["echo", "wait"]),
    cc_ipc.ToolNotFoundError(name="nope", known=[]),
    cc_ipc.InvalidToolResultError(reason="it is a str"),
    cc_ipc.IPCToolExecutionError(tool="weather", error_type="ValueError", message="no such city"),
    cc_ipc.SessionStateError(state="stopped", wanted="start"),
    cc_ipc.SocketPathError(path="/s", reason="Something is in the way"),
    cc_ipc.TransportUnavailableError(reason="nothing is installed"),
    cc_ipc.BridgeStartupError(command=["python", "-m", "x"], reason="It ended"),
    cc_ipc.BridgeStartupError(command=["python", "-m", "x"], reason="It ended", stderr_tail="a" * 9_000 + "the cause"),
]


@pytest.mark.parametrize("error", ERRORS, ids=[f"{i}-{type(error).__name__}" for i, error in enumerate(ERRORS)])
def test_an_error_survives_pickle_and_copy(error: cc_ipc.IPCError) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(twin), str(twin), vars(twin)) == (type(error), str(error), vars(error))


def test_all_errors_are_tried_here() -> None:
    public = {value for _, value in inspect.getmembers(cc_ipc, inspect.isclass) if issubclass(value, Exception)}
    assert public == {type(error) for error in ERRORS}


def test_every_error_has_the_parent_that_the_data_model_names() -> None:
    """IPC-D-39 to IPC-D-43: all are `IPCError`, which is a `ClaudeCodeError`."""
    assert issubclass(cc_ipc.IPCError, ClaudeCodeError)  # IPC-D-39, and below IPC-D-40, IPC-D-41, IPC-D-42, IPC-D-43
    assert all(isinstance(error, cc_ipc.IPCError) for error in ERRORS)


def test_local_and_remote_faults_are_different_classes() -> None:
    """IPC-P-08: nothing is both."""
    for error in ERRORS:
        assert not (isinstance(error, cc_ipc.LocalProtocolError) and isinstance(error, cc_ipc.RemoteProtocolError))


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
