"""The bridge's relay and responses, in threads of this process."""

import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_ipc import MAX_MESSAGE_SIZE
from cc_ipc_bridge import relay as relay_module
from cc_ipc_bridge.process import Bridge, Output
from cc_ipc_bridge.protocol import INTERNAL_ERROR, INVALID_REQUEST, McpServer
from cc_ipc_bridge.relay import CallCancelled, PendingCall, Relay, RelayFault

from .conftest import LIMIT, RESULT, StartParent, frame, full_queue, is_never_own, mcp, mcp_call, raising

PARAMS: dict[str, Any] = {"name": "a", "arguments": {}}


def test_a_connection_that_ended_while_idle_is_replaced(fake_parent: StartParent) -> None:
    path, parent = fake_parent(frame(RESULT))
    relay = Relay(str(path))
    idle: list[socket.socket] = vars(relay)["_idle_connections"]
    for end in (lambda: idle[0].shutdown(socket.SHUT_RDWR), lambda: idle[0].close(), relay.close):
        relay.call(PendingCall(), PARAMS)
        end()
    assert parent.connections == 3


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (None, "IPCConnectionError", "which may have run and is not retried: the parent process has closed it"),
        (b"\x00\x00", "IPCConnectionError", "has closed it"),
        (b"\x00\x00\x00\x09half", "IPCConnectionError", "has closed it"),
        (b"\xff\xff\xff\xff", "IPCMessageSizeError", "announced 4,294,967,295 bytes"),
    ],
    ids=["nothing", "half a length", "half a payload", "too large"],
)
def test_a_missing_response_is_a_fault_and_the_call_is_not_retried(
    fake_parent: StartParent, answer: bytes | None, kind: str, message: str
) -> None:
    """IPC-P-E07, IPC-P-03."""
    path, parent = fake_parent(answer)
    parent.hangs_up = True
    with pytest.raises(RelayFault, match=message) as caught:
        Relay(str(path)).call(PendingCall(), PARAMS)
    assert (caught.value.kind, len(parent.requests)) == (kind, 1)


def test_a_socket_of_another_user_is_a_fault(fake_parent: StartParent, monkeypatch: pytest.MonkeyPatch) -> None:
    """IPC-D-28: nothing is sent."""
    path, parent = fake_parent(None)
    monkeypatch.setattr(relay_module, "is_own_peer", is_never_own)
    with pytest.raises(RelayFault, match="another user owns its socket"):
        Relay(str(path)).call(PendingCall(), PARAMS)
    assert parent.requests == []


@pytest.mark.parametrize(
    ("argument", "kind", "message"),
    [
        ("a", "IPCConnectionError", "cannot be reached"),
        ("a" * MAX_MESSAGE_SIZE, "IPCMessageSizeError", "."),
        ("\ud800", "UnencodableMessageError", "."),
    ],
    ids=["no parent", "too large", "half a character"],
)
def test_a_missing_parent_and_unencodable_arguments_are_a_fault(
    folder: Path, argument: str, kind: str, message: str
) -> None:
    """IPC-P-E01, IPC-P-E02, IPC-D-16."""
    with pytest.raises(RelayFault, match=message) as caught:
        Relay(str(folder / "nowhere")).call(PendingCall(), {"name": "a", "arguments": {"a": argument}})
    assert caught.value.kind == kind


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels refuse a connection when the queue is full")
def test_a_queue_that_stays_full_is_a_fault(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """IPC-P-42."""
    monkeypatch.setattr(relay_module, "_CONNECT_TIMEOUT", 0.05)
    with full_queue(folder / "s"), pytest.raises(RelayFault, match=r"not accept the connection within 0\.05 seconds"):
        Relay(str(folder / "s")).call(PendingCall(), PARAMS)


def test_a_call_cancelled_before_it_was_sent_is_not_sent(fake_parent: StartParent) -> None:
    path, parent = fake_parent(None)
    pending, relay = PendingCall(), Relay(str(path))
    pending.cancel()
    with pytest.raises(CallCancelled):
        relay.call(pending, PARAMS)
    assert parent.requests == []
    relay.close()


def test_a_call_cancelled_after_its_response_closes_its_connection(
    fake_parent: StartParent, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = fake_parent(frame(RESULT))
    relay, pending = Relay(str(path)), PendingCall()
    receive = vars(relay_module)["_receive"]

    def receive_and_cancel(sock: socket.socket) -> bytes:
        payload = receive(sock)
        pending.cancel()
        return payload

    monkeypatch.setattr(relay_module, "_receive", receive_and_cancel)
    assert relay.call(pending, PARAMS) == RESULT
    assert vars(relay)["_idle_connections"] == []


def test_cancelling_a_call_whose_connection_has_ended_raises_nothing() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    pending = PendingCall()
    assert pending.attach(ours)
    ours.close()
    pending.cancel()
    assert not pending.detach()


# The bridge, with a pipe for the output:


class Client:
    """A client for a bridge that runs in this process."""

    def __init__(self, relay: Relay) -> None:
        end, self._fd = os.pipe()
        self.bridge = Bridge(McpServer([]), relay, Output(self._fd))
        self.lines = os.fdopen(end, "rb")

    def say(self, *messages: object) -> None:
        """Write messages and close the input."""
        self.bridge.run([json.dumps(message).encode() for message in messages])

    def read(self) -> Any:
        return json.loads(self.lines.readline())

    def close(self) -> None:
        os.close(self._fd)
        self.lines.close()


ClientOf: TypeAlias = Callable[[Relay | Path], Client]


@pytest.fixture
def client_of(at_end: contextlib.ExitStack) -> ClientOf:
    def start(relay: Relay | Path) -> Client:
        client = Client(relay if isinstance(relay, Relay) else Relay(str(relay)))
        return at_end.enter_context(contextlib.closing(client))

    return start


def test_calls_are_answered_in_parallel_and_before_the_bridge_ends(
    fake_parent: StartParent, client_of: ClientOf
) -> None:
    """IPC-P-33, IPC-P-06: eight at once, each on a connection of its own."""
    meeting = threading.Barrier(8)

    def meet(payload: bytes) -> bytes:
        meeting.wait(LIMIT)
        return frame(RESULT)

    path, parent = fake_parent(meet)
    client = client_of(path)
    client.say(*(mcp_call(number, "a") for number in range(8)))
    assert {client.read()["id"] for _ in range(8)} == set(range(8))
    assert parent.connections == 8


@pytest.mark.parametrize("mistake", [None, MemoryError("none left")], ids=["fault", "mistake"])
def test_a_relay_fault_and_a_bug_in_the_bridge_are_mcp_errors(
    folder: Path,
    client_of: ClientOf,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mistake: Exception | None,
) -> None:
    """IPC-P-E01, IPC-P-34: stderr has the bug's traceback."""
    relay = Relay(str(folder / "nowhere"))
    if mistake is not None:
        monkeypatch.setattr(relay, "call", raising(mistake))
    client = client_of(relay)
    client.say(mcp_call(7, "a"), mcp("notifications/initialized"))
    answer = client.read()
    assert (answer["id"], answer["error"]["code"]) == (7, INTERNAL_ERROR)
    assert ("Traceback" in capsys.readouterr().err) == (mistake is not None)
    if mistake is None:
        assert answer["error"]["data"] == {"type": "IPCConnectionError"}
    else:
        assert answer["error"]["message"] == "MemoryError: none left"


def test_a_request_id_that_is_pending_is_refused(fake_parent: StartParent, client_of: ClientOf) -> None:
    twice = threading.Event()

    def wait(payload: bytes) -> bytes:
        assert twice.wait(LIMIT)
        return frame(RESULT)

    path, _ = fake_parent(wait)
    client = client_of(path)
    thread = threading.Thread(target=client.say, args=(mcp_call(7, "a"), mcp_call(7, "a")))
    thread.start()
    assert client.read()["error"]["code"] == INVALID_REQUEST
    twice.set()
    assert "result" in client.read()
    thread.join(LIMIT)


def test_a_cancelled_call_is_not_answered_and_an_unknown_one_ignored(
    fake_parent: StartParent, client_of: ClientOf
) -> None:
    """IPC-P-32."""
    release = threading.Event()

    def hold(payload: bytes) -> bytes | None:
        if b'"slow"' in payload:
            assert release.wait(LIMIT)
            return None
        return frame(RESULT)

    path, _ = fake_parent(hold)
    client = client_of(path)
    cancellations = [mcp("notifications/cancelled", {"requestId": number}) for number in (1, 99)]
    client.say(mcp_call(1, "slow"), *cancellations, mcp_call(2, "a"))
    assert client.read()["id"] == 2
    release.set()


def test_a_call_that_outlasts_the_client_is_cancelled(fake_parent: StartParent, client_of: ClientOf) -> None:
    """IPC-P-36."""
    release = threading.Event()

    def hold(payload: bytes) -> None:
        assert release.wait(LIMIT)

    path, _ = fake_parent(hold)
    client = client_of(path)
    client.say(mcp_call(1, "a"))
    release.set()
    pending: Any = vars(client.bridge)["_pending"]
    assert not pending or next(iter(pending.values())).is_cancelled


def test_a_failed_thread_start_is_an_mcp_error(
    folder: Path, client_of: ClientOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(folder / "nowhere")
    monkeypatch.setattr(threading.Thread, "start", raising(RuntimeError("can't start new thread")))
    client.say(mcp_call(7, "a"))
    assert "Too many calls" in client.read()["error"]["message"]


def test_a_client_that_does_not_read_is_reported_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    end, fd = os.pipe()
    os.close(end)
    Output(fd).write(b"line\n")
    os.close(fd)
    assert "cannot write to the client" in capsys.readouterr().err
