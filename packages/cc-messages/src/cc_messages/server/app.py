"""`create_app()`: the Messages API over Claude Code as an HTTP server, for clients in any language.

It needs the extra `cc-messages[server]`, and is imported without it; `server/http_server.py` has its parts.
"""

import os
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ..transport import ClaudeCodeTransport

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["MISSING", "TOKEN_VARIABLE", "create_app", "new_token"]

TOKEN_VARIABLE = "CC_MESSAGES_TOKEN"  # noqa: S105 - the name of a variable
"""The environment variable with the token, used without the argument."""

MISSING = "The server needs starlette and uvicorn: pip install 'cc-messages[server]'"
"""The error message for a missing extra."""

_MEGABYTE = 1024 * 1024
_TOKEN_BYTES = 32


def create_app(
    transport: ClaudeCodeTransport | None = None,
    *,
    token: str | None = None,
    max_requests: int = 64,
    max_body_bytes: int = 32 * _MEGABYTE,
    ping_seconds: float = 10.0,
) -> "Starlette":
    """Return an ASGI application that serves the Messages API. It starts no process before the first request.

    It has no origin checks and sends no CORS headers: a page in a browser, also one that has rebound its name to this
    machine, cannot know the token, and without it gets nothing.

    Args:
        transport: Answers the requests. If None, the application makes one, which ends when the application is shut
            down; the caller closes a given transport.
        token: Required from clients, as `Authorization: Bearer …` or `x-api-key`. If None, the value of the environment
            variable `CC_MESSAGES_TOKEN`; without one, a new one, which is written to standard error once. It is in
            `app.state.token`.
        max_requests: The maximum number of requests in progress; one more is answered with 429. Requests without a free
            process wait.
        max_body_bytes: The maximum length of a request; 32 MiB is the API's own limit.
        ping_seconds: The silence of the model, in seconds, after which a stream gets a `ping` event.

    Raises:
        ImportError: The extra `cc-messages[server]` is not installed.
        ValueError: The token is empty or not plain ASCII, or a limit is not positive.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route

        from .http_server import Gate, Limits
    except ImportError as error:
        raise ImportError(MISSING, name=error.name) from error
    token = _token(token)
    limits = Limits(max_requests, max_body_bytes, ping_seconds)
    own = transport or ClaudeCodeTransport()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if transport is None:
                await own.aclose()

    app = Starlette(routes=[Route("/{path:path}", Gate(own, token, limits))], lifespan=lifespan)
    app.state.token = token
    return app


def new_token() -> str:
    """Return a token that cannot be guessed."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def _token(token: str | None) -> str:
    if token is None:
        token = os.environ.get(TOKEN_VARIABLE) or None
    if token is None:
        token = new_token()
        sys.stderr.write(f"cc-messages: clients of the server need the token {token}\n")
    # Characters that a header can carry; a client could never send others.
    if not token or not token.isascii() or not token.isprintable() or token != token.strip():
        raise ValueError("the token must be a text of printable ASCII characters, without blanks around it")
    return token
