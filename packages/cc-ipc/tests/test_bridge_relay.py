"""Relaying and answering, in threads of this process."""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from cc_ipc import MAX_MESSAGE_SIZE
from cc_ipc.bridge import relay as relay_module
from cc_ipc.bridge.process import Bridge, Output
from cc_ipc.bridge.protocol import INTERNAL_ERROR, INVALID_REQUEST, McpServer
from cc_ipc.bridge.relay import CallCancelled, PendingCall, Relay, RelayFault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import FakeParent

    StartParent = Callable[[Callable[[bytes], bytes | None]], tuple[Path, FakeParent]]

LIMIT = 10.0
RESULT = b'{"result":{"content":[{"type":"text","text":"ok"}]}}'


def is_never_own(sock: socket.socket) -> bool:
    return False


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def test_a_connection_is_opened_for_the_first_call_and_kept_and_carries_requests_of_the_protocol(
    fake_parent: StartParent,
) -> None:
    """IPC-P-04, IPC-R-07, IPC-P-10."""
    seen: list[bytes] = []

    def answer(payload: bytes) -> bytes:
        seen.append(payload)
        return frame(RESULT)

    path, parent = fake_parent(answer)
    relay = Relay(str(path))
    assert parent.connections == 0
    params: dict[str, Any] = {"name": "a", "arguments": {"x": "é"}, "tool_use_id": "toolu_1"}
    for _ in range(3):
        assert relay.call(PendingCall(), params) == RESULT
    assert parent.connections == 1
    assert list(map(json.loads, seen)) == [{"method": "call_tool", "params": params}] * 3
    relay.close()


def test_a_connection_that_ended_while_idle_is_replaced(fake_parent: StartParent) -> None:
    path, parent = fake_parent(lambda payload: frame(RESULT))
    relay = Relay(str(path))
    idle: list[socket.socket] = vars(relay)["_idle"]
    for end in (lambda: idle[0].shutdown(socket.SHUT_RDWR), lambda: idle[0].close()):
        relay.call(PendingCall(), {"name": "a", "arguments": {}})
        end()
    relay.call(PendingCall(), {"name": "a", "arguments": {}})
    assert parent.connections == 3
    relay.close()


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (None, "IPCConnectionError", "which may have run, and is not repeated: the parent process has closed it"),
        (b"\x00\x00", "IPCConnectionError", "has closed it"),
        (b"\x00\x00\x00\x09half", "IPCConnectionError", "has closed it"),
        (b"\xff\xff\xff\xff", "IPCMessageSizeError", "announced 4,294,967,295 bytes"),
    ],
)
def test_a_response_that_does_not_come_is_a_fault(
    fake_parent: StartParent, answer: bytes | None, kind: str, message: str
) -> None:
    """IPC-P-E07, IPC-P-03: and the call is not sent again."""
    requests: list[bytes] = []

    def once(payload: bytes) -> bytes | None:
        requests.append(payload)
        return answer

    path, parent = fake_parent(once)
    parent.hangs_up = True
    with pytest.raises(RelayFault, match=message) as caught:
        Relay(str(path)).call(PendingCall(), {"name": "a", "arguments": {}})
    assert caught.value.kind == kind
    assert len(requests) == 1


def test_a_socket_of_another_user_is_a_fault(fake_parent: StartParent, monkeypatch: pytest.MonkeyPatch) -> None:
    """IPC-D-28: nothing is sent there."""
    requests: list[bytes] = []
    path, _ = fake_parent(lambda payload: requests.append(payload))
    monkeypatch.setattr(relay_module, "is_own_peer", is_never_own)
    with pytest.raises(RelayFault, match="another user has its socket"):
        Relay(str(path)).call(PendingCall(), {"name": "a", "arguments": {}})
    assert requests == []


@pytest.mark.parametrize(
    ("argument", "kind", "message"),
    [
        ("a", "IPCConnectionError", "cannot be reached"),
        ("a" * MAX_MESSAGE_SIZE, "IPCMessageSizeError", "."),
        ("\ud800", "UnencodableMessageError", "."),
    ],
    ids=["no parent", "too large", "half a character"],
)
def test_no_parent_and_arguments_that_cannot_be_sent_are_a_fault(
    folder: Path, argument: str, kind: str, message: str
) -> None:
    """IPC-P-E01, IPC-P-E02, IPC-P-15."""
    with pytest.raises(RelayFault, match=message) as caught:
        Relay(str(folder / "nowhere")).call(PendingCall(), {"name": "a", "arguments": {"a": argument}})
    assert caught.value.kind == kind


def test_a_call_cancelled_before_it_was_sent_is_not_sent(fake_parent: StartParent) -> None:
    requests: list[bytes] = []
    path, _ = fake_parent(lambda payload: requests.append(payload))
    pending = PendingCall()
    pending.cancel()
    relay = Relay(str(path))
    with pytest.raises(CallCancelled):
        relay.call(pending, {"name": "a", "arguments": {}})
    assert requests == []
    relay.close()


def test_a_call_cancelled_while_it_runs_ends_its_connection(fake_parent: StartParent) -> None:
    """IPC-P-32."""
    running, ended = threading.Event(), threading.Event()

    def hold(payload: bytes) -> None:
        running.set()
        assert ended.wait(LIMIT)

    path, _ = fake_parent(hold)
    pending = PendingCall()
    caught: list[BaseException] = []

    def call() -> None:
        try:
            Relay(str(path)).call(pending, {"name": "a", "arguments": {}})
        except CallCancelled as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert running.wait(LIMIT)
    pending.cancel()
    thread.join(LIMIT)
    ended.set()
    assert len(caught) == 1
    assert pending.is_cancelled
    pending.cancel()


def test_a_call_cancelled_when_its_response_is_here_gives_its_connection_up(
    fake_parent: StartParent, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = fake_parent(lambda payload: frame(RESULT))
    relay, pending = Relay(str(path)), PendingCall()
    receive = vars(relay_module)["_receive"]

    def receive_and_cancel(sock: socket.socket) -> bytes:
        payload = receive(sock)
        pending.cancel()
        return payload

    monkeypatch.setattr(relay_module, "_receive", receive_and_cancel)
    assert relay.call(pending, {"name": "a", "arguments": {}}) == RESULT
    assert vars(relay)["_idle"] == []


def test_cancelling_a_connection_that_has_just_ended_is_no_fault() -> None:
    left, right = socket.socketpair()
    right.close()
    pending = PendingCall()
    assert pending.attach(left)
    left.close()
    pending.cancel()
    assert not pending.detach()


# The bridge, with a pipe for its output:


class Client:
    """What a bridge of this process writes."""

    def __init__(self, bridge_of: Callable[[Output], Bridge]) -> None:
        self._end, self._fd = os.pipe()
        self.bridge = bridge_of(Output(self._fd))
        self.lines = os.fdopen(self._end, "rb")

    def say(self, *messages: object) -> None:
        """Write messages and close the input."""
        self.bridge.run([json.dumps(message).encode() for message in messages])

    def read(self) -> Any:
        return json.loads(self.lines.readline())

    def close(self) -> None:
        os.close(self._fd)
        self.lines.close()


@pytest.fixture
def client_of() -> Iterator[Callable[[Relay], Client]]:
    clients: list[Client] = []

    def start(relay: Relay) -> Client:
        clients.append(Client(lambda output: Bridge(McpServer([]), relay, output)))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


def call(request_id: int, name: str = "a") -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": name}}


def test_calls_are_answered_in_parallel_and_before_the_bridge_ends(
    fake_parent: StartParent, client_of: Callable[[Relay], Client]
) -> None:
    """IPC-P-33, IPC-P-06: eight at once, each on a connection of its own."""
    meeting = threading.Barrier(8)

    def meet(payload: bytes) -> bytes:
        meeting.wait(LIMIT)
        return frame(RESULT)

    path, parent = fake_parent(meet)
    client = client_of(Relay(str(path)))
    client.say(*(call(number) for number in range(8)))
    answers = [client.read() for _ in range(8)]
    assert {answer["id"] for answer in answers} == set(range(8))
    assert parent.connections == 8


@pytest.mark.parametrize("mistake", [None, MemoryError("none left")])
def test_a_fault_of_the_relay_and_a_mistake_in_the_bridge_are_mcp_errors_and_the_mistake_is_told_on_stderr(
    folder: Path,
    client_of: Callable[[Relay], Client],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mistake: Exception | None,
) -> None:
    """IPC-P-E01, IPC-P-34."""
    relay = Relay(str(folder / "nowhere"))

    def fail(*arguments: object) -> bytes:
        assert mistake is not None
        raise mistake

    if mistake is not None:
        monkeypatch.setattr(relay, "call", fail)
    client = client_of(relay)
    client.say(call(7), {"jsonrpc": "2.0", "method": "notifications/initialized"})
    answer = client.read()
    assert (answer["id"], answer["error"]["code"]) == (7, INTERNAL_ERROR)
    assert ("Traceback" in capsys.readouterr().err) == (mistake is not None)
    if mistake is None:
        assert answer["error"]["data"] == {"type": "IPCConnectionError"}
    else:
        assert answer["error"]["message"] == "MemoryError: none left"


def test_a_request_id_that_is_under_way_is_refused(
    fake_parent: StartParent, client_of: Callable[[Relay], Client]
) -> None:
    twice = threading.Event()

    def wait(payload: bytes) -> bytes:
        assert twice.wait(LIMIT)
        return frame(RESULT)

    path, _ = fake_parent(wait)
    client = client_of(Relay(str(path)))
    thread = threading.Thread(target=client.say, args=(call(7), call(7)))
    thread.start()
    assert client.read()["error"]["code"] == INVALID_REQUEST
    twice.set()
    assert "result" in client.read()
    thread.join(LIMIT)


def test_a_cancelled_call_is_not_answered_and_an_unknown_one_ignored(
    fake_parent: StartParent, client_of: Callable[[Relay], Client]
) -> None:
    """IPC-P-32."""
    release = threading.Event()

    def hold(payload: bytes) -> bytes | None:
        if b'"slow"' in payload:
            assert release.wait(LIMIT)
            return None
        return frame(RESULT)

    path, _ = fake_parent(hold)
    client = client_of(Relay(str(path)))
    cancellations = [
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}} for number in (1, 99)
    ]
    client.say(call(1, "slow"), *cancellations, call(2))
    assert client.read()["id"] == 2
    release.set()


def test_a_call_that_outlasts_the_client_is_given_up(
    fake_parent: StartParent, client_of: Callable[[Relay], Client]
) -> None:
    """IPC-P-36."""
    release = threading.Event()

    def hold(payload: bytes) -> None:
        assert release.wait(LIMIT)

    path, _ = fake_parent(hold)
    client = client_of(Relay(str(path)))
    client.say(call(1))
    release.set()
    pending: Any = vars(client.bridge)["_pending"]
    assert not pending or next(iter(pending.values())).is_cancelled


def test_a_system_without_threads_is_an_mcp_error(
    folder: Path, client_of: Callable[[Relay], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    client = client_of(Relay(str(folder / "nowhere")))
    monkeypatch.setattr(threading.Thread, "start", refuse)
    client.say(call(7))
    assert "Too many calls" in client.read()["error"]["message"]


def test_a_client_that_does_not_read_is_told_of_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    end, fd = os.pipe()
    os.close(end)
    Output(fd).write(b"line\n")
    os.close(fd)
    assert "does not read any more" in capsys.readouterr().err
