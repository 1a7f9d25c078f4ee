"""Limits of the server's connections: the time for a request's head, and their number without the token."""

import asyncio
from collections.abc import Mapping
from typing import ClassVar

import h11
from starlette.types import Scope
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["limited_connections", "trust_connection"]

_STATE_KEY = "cc_messages.connection"

_TIMED_OUT = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n"
    b"The head of the request did not come in time\n"
)


class _Connection(H11Protocol):
    # uvicorn documents `http=` with a class of one's own; `app_state`, `cycle` and `transport` it does not document.

    head_seconds: ClassVar[float]
    max_untrusted: ClassVar[int]
    untrusted: ClassVar[dict["_Connection", None]]
    """The connections without the token, oldest first."""

    _head_timer: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.app_state = {**self.app_state, _STATE_KEY: self}
        self._start_head_timer()
        self.untrusted[self] = None
        if len(self.untrusted) > self.max_untrusted:
            oldest = next(iter(self.untrusted))
            oldest.trust()
            oldest.transport.close()

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Before the first request, and after the last answer, bytes belong to the head of the next request.
        if self.cycle and not self.cycle.response_complete:
            self._stop_head_timer()
        elif self._head_timer is None:
            self._start_head_timer()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        self.trust()
        super().connection_lost(exc)

    def trust(self) -> None:
        """Stop counting it."""
        self.untrusted.pop(self, None)

    def _start_head_timer(self) -> None:
        self._head_timer = asyncio.get_running_loop().call_later(self.head_seconds, self._time_out)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _time_out(self) -> None:
        self._head_timer = None
        # The bytes can also be the rest of a request that has its answer.
        if self.conn.their_state is h11.IDLE and (not self.cycle or self.conn.trailing_data[0]):
            self.transport.write(_TIMED_OUT)
        self.transport.close()


def limited_connections(*, head_seconds: float = 10.0, max_untrusted: int = 100) -> type[H11Protocol]:
    """Return a protocol for the connections of one uvicorn server.

    Args:
        head_seconds: The time for the head of a request, from the connection or the head's first byte on. After that
            the answer is 408, and the connection is closed.
        max_untrusted: The maximum number of connections without a request with the token. One more closes the oldest of
            them: a client that has the token sends it at once.
    """
    limits: dict[str, object] = {"head_seconds": head_seconds, "max_untrusted": max_untrusted, "untrusted": {}}
    return type("Connection", (_Connection,), limits)


def trust_connection(scope: Scope) -> None:
    """Count the connection of a request as one with the token, if it is limited."""
    state: Mapping[str, object] = scope.get("state", {})
    if isinstance(connection := state.get(_STATE_KEY), _Connection):
        connection.trust()
