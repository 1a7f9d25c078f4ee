"""The bridge at work: one thread reads what the client writes, and each call that runs has one more.

It joins protocol and relay, and owns the output. It does not know where its lines come from, nor how the process ends.
"""

from __future__ import annotations

import os
import sys
import threading

from .protocol import INTERNAL_ERROR, INVALID_REQUEST, Call, Cancel, Reply, error_line
from .relay import CallCancelled, PendingCall, RelayFault
from .responses import response_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .protocol import McpServer, RequestId
    from .relay import Relay

__all__ = ["Bridge", "Output"]

# When the client or the parent has gone, calls that are about to be answered still are. It is short, for a client that
# ends waits for its servers; and both ends know of the end of the other by then.
_DRAIN_TIMEOUT = 0.5


class Output:
    """A descriptor that takes whole lines from any thread.

    Args:
        fd: The descriptor.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()

    def write(self, line: bytes) -> None:
        """Write a line. Nobody may be there to read it: then the input ends too, and that ends the process."""
        rest = memoryview(line)
        with self._lock:
            try:
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
            except OSError as error:
                sys.stderr.write(f"cc_ipc.bridge: the client does not read any more: {error}\n")


class Bridge:
    """Answers an MCP client, and has tools run by the parent process.

    Args:
        server: What to do about each line.
        relay: The way to the parent.
        output: Where answers go.
    """

    def __init__(self, server: McpServer, relay: Relay, output: Output) -> None:
        self._server = server
        self._relay = relay
        self._output = output
        self._pending: dict[RequestId, PendingCall] = {}
        self._running = 0  # threads that have not written their answer yet
        self._changed = threading.Condition()

    def run(self, lines: Iterable[bytes]) -> None:
        """Act on lines until there are no more, then let the calls that run come to their end."""
        for line in lines:
            self._act(line)
        self.finish()

    def finish(self) -> None:
        """Wait, but not for long, until the calls that run are answered; then give up the rest."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, _DRAIN_TIMEOUT)
            rest = list(self._pending.values())
        for pending in rest:
            pending.cancel()
        self._relay.close()

    def _act(self, line: bytes) -> None:
        action = self._server.receive(line)
        if isinstance(action, Reply):
            self._output.write(action.line)
        elif isinstance(action, Call):
            self._begin(action)
        elif isinstance(action, Cancel):
            self._cancel(action.request_id)

    def _begin(self, call: Call) -> None:
        pending = PendingCall()
        with self._changed:
            is_new = self._pending.setdefault(call.request_id, pending) is pending
            self._running += is_new
        if not is_new:
            self._output.write(error_line(call.request_id, INVALID_REQUEST, "A request with this id is under way"))
            return
        try:
            threading.Thread(target=self._answer, args=(call, pending), daemon=True).start()
        except RuntimeError as error:  # the system gives no more threads
            line = error_line(call.request_id, INTERNAL_ERROR, f"Too many calls run at once: {error}")
            self._end(call, pending, line)

    def _cancel(self, request_id: RequestId) -> None:
        with self._changed:
            pending = self._pending.get(request_id)
        if pending is not None:
            pending.cancel()

    def _answer(self, call: Call, pending: PendingCall) -> None:
        try:
            line = response_line(call, self._relay.call(pending, call.params))
        except CallCancelled:
            line = b""
        except RelayFault as fault:
            line = error_line(call.request_id, INTERNAL_ERROR, str(fault), {"type": fault.kind})
        except Exception as error:  # no memory, or a mistake here: the client must not wait for ever
            sys.excepthook(type(error), error, error.__traceback__)
            line = error_line(call.request_id, INTERNAL_ERROR, f"{type(error).__name__}: {error}")
        self._end(call, pending, line)

    def _end(self, call: Call, pending: PendingCall, line: bytes) -> None:
        # Forgotten first: a client that has its answer may use the id again.
        with self._changed:
            del self._pending[call.request_id]
        if not pending.is_cancelled:
            self._output.write(line)
        with self._changed:
            self._running -= 1
            self._changed.notify_all()
