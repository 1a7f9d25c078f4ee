"""Running of the application under uvicorn, from a bound socket to the end of the last process."""

import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from .connections import limited_connections

__all__ = ["serve_until_signal"]


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        # uvicorn's own raises the signals again at the end, so a clean shutdown would end with an error.
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


async def serve_until_signal(app: ASGIApp, listener: socket.socket, *, grace_seconds: int) -> None:
    """Serve until SIGINT or SIGTERM; running answers then have `grace_seconds` to end, or until a second signal."""
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=limited_connections(),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=grace_seconds,
    )
    await _Server(config).serve(sockets=[listener])
