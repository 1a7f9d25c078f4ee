"""Processing in the bridge: a thread reads the client messages, and each running call has a thread of its own."""

from __future__ import annotations

import os
import sys
import threading

from .protocol import INTERNAL_ERROR, INVALID_REQUEST, CallFrame, CancelFrame, error_line
from .relay import CallCancelled, PendingCall, RelayFault
from .responses import response_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .protocol import McpServer, RequestId
    from .relay import Relay

# When the client or the parent exits, calls that are almost finished are still answered. The time is short, because a
# client that exits waits for servers, and each side has noticed the other's exit by then.
_DRAIN_TIMEOUT = 0.5


class Output:
    """Thread-safe writer for whole lines."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()

    def write(self, line: bytes) -> None:
        """Write a line. A closed pipe is only reported: the input ends, too, and with it the process."""
        rest = memoryview(line)
        with self._lock:
            try:
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError as error:
                sys.stderr.write(f"cc_ipc_bridge: cannot write to the client: {error}\n")


class Bridge:
    """MCP server that relays tool calls to the parent process."""

    def __init__(self, server: McpServer, relay: Relay, output: Output) -> None:
        self._server = server
        self._relay = relay
        self._output = output
        self._pending: dict[RequestId, PendingCall] = {}
        self._running = 0  # threads that have not written their response yet
        self._changed = threading.Condition()

    def run(self, lines: Iterable[bytes]) -> None:
        """Process all lines, then wait for the running calls."""
        for line in lines:
            self._act(line)
        self.finish()

    def finish(self) -> None:
        """Wait at most half a second for the running calls, then cancel the rest."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, _DRAIN_TIMEOUT)
            rest = list(self._pending.values())
        for pending in rest:
            pending.cancel()
        self._relay.close()

    def _act(self, line: bytes) -> None:
        action = self._server.receive(line)
        if isinstance(action, bytes):
            self._output.write(action)
        elif isinstance(action, CallFrame):
            self._begin(action)
        elif isinstance(action, CancelFrame):
            self._cancel(action.request_id)

    def _begin(self, call: CallFrame) -> None:
        pending = PendingCall()
        with self._changed:
            is_new = self._pending.setdefault(call.request_id, pending) is pending
            self._running += is_new
        if not is_new:
            self._output.write(error_line(call.request_id, INVALID_REQUEST, "A request with this id is pending"))
            return
        try:
            threading.Thread(target=self._answer, args=(call, pending), daemon=True).start()
        except RuntimeError as error:  # the system thread limit is reached
            line = error_line(call.request_id, INTERNAL_ERROR, f"Too many calls run at once: {error}")
            self._end(call, pending, line)

    def _cancel(self, request_id: RequestId) -> None:
        with self._changed:
            pending = self._pending.get(request_id)
        if pending is not None:
            pending.cancel()

    def _answer(self, call: CallFrame, pending: PendingCall) -> None:
        try:
            line = response_line(call, self._relay.call(pending, call.params))
        except CallCancelled:
            line = b""
        except RelayFault as fault:
            line = error_line(call.request_id, INTERNAL_ERROR, str(fault), {"type": fault.kind})
        except Exception as error:  # out of memory, or a bug here: the client must not wait for ever
            sys.excepthook(type(error), error, error.__traceback__)
            line = error_line(call.request_id, INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        self._end(call, pending, line)

    def _end(self, call: CallFrame, pending: PendingCall, line: bytes) -> None:
        # Removed before the response is written: a client that has its response may reuse the id.
        with self._changed:
            del self._pending[call.request_id]
        if not pending.is_cancelled:
            self._output.write(line)
        with self._changed:
            self._running -= 1
            self._changed.notify_all()
