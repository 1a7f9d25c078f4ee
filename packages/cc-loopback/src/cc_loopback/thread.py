"""A thread with an event loop that serves an ASGI application on 127.0.0.1.

It serves even while a test blocks the test event loop, and sync code can use it.
"""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from functools import partial

import uvicorn
from starlette.types import ASGIApp

from .api.errors import ServerStateError

# A start only creates an event loop, so 5 s mean a serious problem.
_START_TIMEOUT = 5.0
# A stop cancels all requests and waits for no client. Only a responder that blocks the thread takes longer.
_STOP_TIMEOUT = 2.0
# Cancelled requests have this long to run their `finally` blocks before the loop is closed.
_REQUESTS_TIMEOUT = 0.5
# Longer than any test: the server must not close an idle connection just when a client reuses it.
_KEEP_ALIVE = 3600
_LOGGERS = ("uvicorn.error", "uvicorn.access", "asyncio")


class ServerThread:
    """Thread that serves an application from `start()` to `stop()`. It cannot be restarted."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._config = uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE,
            callback_notify=self._on_first_tick,
        )
        self._port = port
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._stop_soon: Callable[[], object] = lambda: None

    def start(self) -> int:
        """Start the thread, wait until it accepts connections, and return the port."""
        listener = _bind(self._port)
        port: int = listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, args=(listener,), name="cc-loopback", daemon=True)
        self._thread.start()
        is_ready = self._started.wait(_START_TIMEOUT)
        if self._failure is not None:
            raise ServerStateError("the server's thread ended before it served") from self._failure
        if not is_ready:
            self._stop_soon()
            raise ServerStateError(f"the server did not accept connections within {_START_TIMEOUT} s")
        return port

    def stop(self) -> None:
        """Abort all connections, cancel running requests, and end the thread. Idempotent."""
        # The loop is closed already if the server failed.
        with contextlib.suppress(RuntimeError):
            self._stop_soon()
        if self._thread is not None:
            self._thread.join(_STOP_TIMEOUT)
            if self._thread.is_alive():
                raise ServerStateError(f"a responder still blocks the server's thread after {_STOP_TIMEOUT} s")

    def _run(self, listener: socket.socket) -> None:
        with _silenced_loggers(), listener:
            try:
                asyncio.run(self._serve(listener))
            except BaseException as error:  # `start()` raises it; a thread cannot.
                self._failure = error
            finally:
                self._started.set()

    async def _serve(self, listener: socket.socket) -> None:
        stop = asyncio.Event()
        self._stop_soon = partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set)
        server = uvicorn.Server(self._config)
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if serving.done():
            serving.result()
        await _shut_down(server, serving)

    async def _on_first_tick(self) -> None:
        """Mark the server as ready. Uvicorn calls this in the main loop's first tick, when the socket listens."""
        self._started.set()


async def _shut_down(server: uvicorn.Server, serving: asyncio.Future[None]) -> None:
    """Stop uvicorn at once; `should_exit` would take at least two ticks, 0.2 s, in every test."""
    for listener in server.servers:
        listener.close()
    for connection in list(server.server_state.connections):
        # Not `close()`: it waits until the client has read all data.
        connection.transport.abort()
    requests = list(server.server_state.tasks)
    for task in [*requests, serving]:
        task.cancel()
    await asyncio.wait([*requests, serving], timeout=_REQUESTS_TIMEOUT)


def _bind(port: int) -> socket.socket:
    # With an explicit protocol: only then asyncio disables Nagle's algorithm, which delays every response by 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
    except BaseException:
        listener.close()
        raise
    return listener


@contextlib.contextmanager
def _silenced_loggers():
    """Drop this thread's log records: uvicorn logs cut streams and cancelled requests, expected here, as errors.

    The filter looks at the thread, not at the level, so that another server in the process can log.
    """
    thread = threading.get_ident()

    def is_foreign(record: logging.LogRecord) -> bool:
        return record.thread != thread

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(is_foreign)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_foreign)
