"""All that knows uvicorn: the limits of a server's connections, and the run from a bound socket to a signal."""

import asyncio
import logging
import signal
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import ClassVar

import h11
import uvicorn
from starlette.types import ASGIApp, Scope
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

logger = logging.getLogger(__name__)

_STATE_KEY = "cc_messages.connection"

# Clients and proxies close a connection that they do not use, httpx after 5 s and others after 60 s. A server that
# closes it at the same moment loses the request that is on its way.
_KEEP_ALIVE_SECONDS = 75

_TIMED_OUT = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n"
    b"The head of the request did not come in time\n"
)


class _Connection(H11Protocol):
    # uvicorn documents `http=` with a custom class; `app_state`, `cycle` and `transport` it does not document.

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
        """Stop counting the connection."""
        self.untrusted.pop(self, None)

    def _start_head_timer(self) -> None:
        self._head_timer = asyncio.get_running_loop().call_later(self.head_seconds, self._time_out)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _time_out(self) -> None:
        self._head_timer = None
        # The bytes can also be the rest of an answered request.
        if self.conn.their_state is h11.IDLE and (not self.cycle or self.conn.trailing_data[0]):
            self.transport.write(_TIMED_OUT)
        self.transport.close()


def limited_connections(*, head_seconds: float = 10.0, max_untrusted: int = 100) -> type[H11Protocol]:
    """Return a protocol for the connections of a uvicorn server.

    From the connection or its first byte on, a request's head has `head_seconds`; then the answer is 408, and the
    connection is closed. At most `max_untrusted` connections may be without a request with the token. Another one
    closes the oldest of them: a client that has the token sends it at once.
    """
    limits: dict[str, object] = {"head_seconds": head_seconds, "max_untrusted": max_untrusted, "untrusted": {}}
    return type("Connection", (_Connection,), limits)


def trust_connection(scope: Scope) -> None:
    """Note that a request's connection has the token, if it is limited."""
    state: Mapping[str, object] = scope.get("state", {})
    if isinstance(connection := state.get(_STATE_KEY), _Connection):
        connection.trust()


class _Server(uvicorn.Server):
    # uvicorn itself cancels requests at the end, with a traceback for each, and waits for connections after a second
    # signal too, from Python 3.12 on. `server_state` and `lifespan` it does not document.

    def __init__(self, config: uvicorn.Config, grace_seconds: float) -> None:
        super().__init__(config)
        self._grace_seconds = grace_seconds

    @contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        # uvicorn's own raises the signals again at the end, which is an error, and ignores a second SIGTERM.
        loop = asyncio.get_running_loop()

        def end(_number: int, _frame: FrameType | None) -> None:
            if self.should_exit:
                loop.call_soon_threadsafe(self._cut)
            self.should_exit = True

        numbers = (signal.SIGINT, signal.SIGTERM)
        handlers = [signal.signal(number, end) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, handlers, strict=True):
                signal.signal(number, handler)

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        deadline = asyncio.get_running_loop().call_later(self._grace_seconds, self._cut)
        await super().shutdown(sockets)
        deadline.cancel()
        if self.force_exit:  # then uvicorn leaves it out
            await self.lifespan.shutdown()

    def _cut(self) -> None:
        """End all connections, and with them the work on their requests."""
        self.force_exit = True
        if connections := [*self.server_state.connections]:
            logger.warning("The server ends, and cuts off %d connection(s)", len(connections))
        for connection in connections:
            connection.transport.abort()


async def serve_until_signal(app: ASGIApp, listener: socket.socket, *, grace_seconds: float) -> None:
    """Serve until SIGINT or SIGTERM; running answers then have `grace_seconds` to end, or until a second signal."""
    config = uvicorn.Config(
        app, loop="asyncio", http=limited_connections(), ws="none", lifespan="on", log_config=None, access_log=False,
        proxy_headers=False, server_header=False, timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )  # fmt: skip
    await _Server(config, grace_seconds).serve(sockets=[listener])
