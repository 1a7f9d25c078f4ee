"""Every error: base class, attributes, message, and pickling."""

import copy
import inspect
import pickle

import pytest

import cc_ipc
from cc_ipc import errors
from cc_ipc.errors import (
    InvalidPayloadError,
    InvalidRequestError,
    InvalidToolResultError,
    LocalMessageSizeError,
    RemoteMessageSizeError,
    SessionStateError,
    SocketPathError,
    UnencodableMessageError,
    UnknownMethodError,
)
from cc_types import ClaudeCodeError

ERRORS: list[cc_ipc.IPCError] = [
    cc_ipc.IPCError("a sentence"),
    cc_ipc.LocalProtocolError("a sentence"),
    cc_ipc.RemoteProtocolError("a sentence"),
    cc_ipc.IPCConnectionError(path="/s", reason="Gone"),
    cc_ipc.IPCMessageSizeError(size=11_000_000, limit=10_000_000),
    LocalMessageSizeError(size=11_000_000, limit=10_000_000),
    RemoteMessageSizeError(size=11_000_000, limit=10_000_000),
    UnencodableMessageError(reason="a set"),
    InvalidPayloadError(size=3, reason="no value"),
    InvalidRequestError(reason="no name"),
    UnknownMethodError(method="list_tools"),
    cc_ipc.ToolNotFoundError(name="nope", known=["echo", "wait"]),
    cc_ipc.ToolNotFoundError(name="nope", known=[]),
    InvalidToolResultError(reason="it is a str"),
    cc_ipc.IPCToolExecutionError(tool="weather", error_type="ValueError", message="no such city"),
    SessionStateError(state="stopped", wanted="start"),
    SocketPathError(path="/s", reason="It exists already"),
    cc_ipc.TransportUnavailableError(reason="nothing is installed"),
    cc_ipc.BridgeStartupError(command=["python", "-m", "x"], reason="It ended"),
    cc_ipc.BridgeStartupError(command=["python", "-m", "x"], reason="It ended", stderr_tail="a" * 9_000 + "the cause"),
]


@pytest.mark.parametrize("error", ERRORS, ids=[f"{i}-{type(error).__name__}" for i, error in enumerate(ERRORS)])
def test_an_error_survives_pickle_and_copy(error: cc_ipc.IPCError) -> None:
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(twin), str(twin), vars(twin)) == (type(error), str(error), vars(error))


def test_every_error_is_covered_has_the_base_class_and_one_side() -> None:
    """IPC-D-39, IPC-D-40, IPC-D-41, IPC-D-42, IPC-D-43, IPC-P-08."""
    defined = {value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, cc_ipc.IPCError)}
    assert defined == {type(error) for error in ERRORS}
    assert issubclass(cc_ipc.IPCError, ClaudeCodeError)
    for error in ERRORS:
        assert not (isinstance(error, cc_ipc.LocalProtocolError) and isinstance(error, cc_ipc.RemoteProtocolError))
