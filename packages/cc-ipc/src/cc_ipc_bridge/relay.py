"""Relay for calls to the parent process over a socket. A connection carries a single call at a time.

A connection is opened when a call needs it, and kept for the next call. After a connection error it is unknown whether
the tool ran, so calls are never retried. This module knows nothing of MCP.
"""

from __future__ import annotations

import socket
import sys
import threading
from time import monotonic, sleep

from .constants import LENGTH_PREFIX_SIZE, MAX_MESSAGE_SIZE, WindowsUnsupportedError
from .payload import encode_json
from .peer import is_own_peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cc_types import JsonValue

# The kernel connects at once, unless the parent connection queue is full.
_CONNECT_TIMEOUT = 5.0

# Linux reports a full queue at once, so the bridge must poll. A parent accepts many connections in this time.
_CONNECT_INTERVAL = 0.005


class RelayFault(Exception):
    """A call could not be made, or the response did not arrive."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind  # class name of the exception in `cc_ipc.errors`, which this process does not import
        super().__init__(message)


class CallCancelled(Exception):
    """The client has cancelled the call."""


class PendingCall:
    """A running call, which another thread may cancel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.is_cancelled: bool = False
        """True if no response is needed."""

    def attach(self, sock: socket.socket) -> bool:
        """Set the call connection; return false if the call is cancelled already."""
        with self._lock:
            if not self.is_cancelled:
                self._socket = sock
            return not self.is_cancelled

    def detach(self) -> bool:
        """Clear the call connection; return false if a cancellation has ended it."""
        with self._lock:
            self._socket = None
            return not self.is_cancelled

    def cancel(self) -> None:
        """End the connection: the parent then cancels the tool, and the waiting thread wakes up."""
        with self._lock:
            self.is_cancelled = True
            if self._socket is not None:
                try:
                    self._socket.shutdown(socket.SHUT_RDWR)
                except OSError:  # the parent has closed it already
                    pass


class Relay:
    """Connections to the parent process."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._idle_connections: list[socket.socket] = []  # `append` and `pop` of a list are thread-safe

    def call(self, pending: PendingCall, params: dict[str, JsonValue]) -> bytes:
        """Send a call and return the response payload. There is no time limit.

        Raises:
            RelayFault: The call could not be made, or the response did not arrive.
            CallCancelled: The call was cancelled.
        """
        frame = _frame(params)
        sock = pop_reusable(self._idle_connections) or self._connect()
        if not pending.attach(sock):
            self._idle_connections.append(sock)
            raise CallCancelled
        try:
            sock.sendall(frame)
            payload = _receive(sock)
        except (OSError, RelayFault) as error:
            intact = pending.detach()
            sock.close()
            if not intact:
                raise CallCancelled from None
            if isinstance(error, RelayFault):
                raise
            broken = "The connection to the parent process ended during the call, which may have run and is not retried"
            raise RelayFault("IPCConnectionError", f"{broken}: {error}") from error
        if pending.detach():
            self._idle_connections.append(sock)
        else:
            sock.close()
        return payload

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle_connections:
            self._idle_connections.pop().close()

    def _connect(self) -> socket.socket:
        if sys.platform == "win32":
            raise WindowsUnsupportedError
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _connect_socket(sock, self._path)
        except OSError as error:
            sock.close()
            raise RelayFault("IPCConnectionError", f"The parent process cannot be reached: {error}") from error
        if not is_own_peer(sock):
            sock.close()
            raise RelayFault("IPCConnectionError", "The parent process cannot be reached: another user owns its socket")
        return sock


def _connect_socket(sock: socket.socket, path: str) -> None:
    """Connect, and wait while the parent queue is full: a socket with a timeout would not wait on Linux."""
    sock.setblocking(False)
    deadline = monotonic() + _CONNECT_TIMEOUT
    while True:
        try:
            sock.connect(path)
        except BlockingIOError as error:
            if monotonic() > deadline:
                message = f"it did not accept the connection within {_CONNECT_TIMEOUT:g} seconds"
                raise TimeoutError(message) from error
            sleep(_CONNECT_INTERVAL)
        else:
            break
    sock.setblocking(True)


def _frame(params: dict[str, JsonValue]) -> bytes:
    try:
        payload = encode_json({"method": "call_tool", "params": params})
    except ValueError as error:
        raise RelayFault("UnencodableMessageError", f"The arguments cannot be sent: {error}") from error
    if len(payload) > MAX_MESSAGE_SIZE:
        message = (
            f"The call has {len(payload):,} bytes, and at most {MAX_MESSAGE_SIZE:,} are allowed. Send smaller arguments"
        )
        raise RelayFault("IPCMessageSizeError", message)
    return len(payload).to_bytes(LENGTH_PREFIX_SIZE, "big") + payload


def _receive(sock: socket.socket) -> bytes:
    size = int.from_bytes(_receive_exactly(sock, LENGTH_PREFIX_SIZE), "big")
    if size > MAX_MESSAGE_SIZE:
        message = f"The parent process announced {size:,} bytes, and at most {MAX_MESSAGE_SIZE:,} are allowed"
        raise RelayFault("IPCMessageSizeError", message)
    return _receive_exactly(sock, size)


def _receive_exactly(sock: socket.socket, size: int) -> bytes:
    buffer = bytearray(size)
    view = memoryview(buffer)
    while view:
        count = sock.recv_into(view, 0, socket.MSG_WAITALL)
        if not count:
            raise ConnectionResetError("the parent process has closed it")
        view = view[count:]
    return bytes(buffer)


def pop_reusable(connections: list[socket.socket]) -> socket.socket | None:
    """Return a connection that is open and has no unrequested data, or `None`; close the unusable ones."""
    if sys.platform == "win32":
        raise WindowsUnsupportedError
    while connections:
        sock = connections.pop()
        try:
            sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return sock
        except OSError:
            pass
        sock.close()
    return None
