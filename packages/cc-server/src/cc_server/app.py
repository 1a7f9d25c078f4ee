"""`create_app()`: the Messages API over Claude Code as an HTTP server, for clients in any language.

The parts are in `http_server.py`.
"""

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Route

from cc_messages import ClaudeCodeTransport

from .admission import Admission
from .clients import ClientFile, ClientTable, LoginTransports, single_client
from .http_server import Gate
from .usage import UsageLedger, UsageStore
from .usage_database import open_database

TOKEN_VARIABLE = "CC_SERVER_TOKEN"  # noqa: S105 - the name of a variable

_MEGABYTE = 1024 * 1024


def create_app(
    transport: ClaudeCodeTransport | None = None,
    *,
    token: str | None = None,
    clients: str | Path | None = None,
    usage_store: str | Path | None = None,
    max_requests: int = 64,
    max_body_bytes: int = 32 * _MEGABYTE,
    ping_seconds: float = 10.0,
) -> Starlette:
    """Return an ASGI application that serves the Messages API. It starts no process before the first request.

    It has no origin checks and sends no CORS headers: a page in a browser, also one that has rebound a name to this
    machine, cannot know the token, and without it gets nothing.

    Args:
        transport: Answers the requests; the caller closes it. If None, the application makes one, which ends when the
            application is shut down.
        token: Required from clients, as `Authorization: Bearer …` or `x-api-key`. If None, the value of the environment
            variable `CC_SERVER_TOKEN`; without that, a new one, which is written to standard error once. It is in
            `app.state.token`, which is None with `clients`.
        clients: A TOML file with several clients, each with a token and limits, in place of a single token. Only the
            owner may have access to it. It is read again when it has changed; if it is invalid then, the clients stay
            as they were, and the reason is logged.
        usage_store: The database with these clients' usage by UTC day: the path of a SQLite file, which is created if
            it does not exist; or, with the extra `postgres`, the URL of a PostgreSQL database, for servers on several
            machines. If None, a file beside the file `clients`, with the suffix `.usage.sqlite`.
        max_requests: The maximum number of requests in progress; another request is answered with 429. Requests without
            a free process wait.
        max_body_bytes: The maximum length of a request; 32 MiB is the API limit.
        ping_seconds: Seconds without an event from the model after which a stream gets a `ping` event.

    Raises:
        ValueError: The token is empty or not plain ASCII; a limit is not positive; `clients` or `usage_store` cannot be
            used; or there are several clients, and the login is a subscription.
    """
    if clients is not None and token is not None:
        raise ValueError("give either a token or a file with clients, not both")
    if clients is None and usage_store is not None:
        raise ValueError("usage is stored for the clients of a file alone: give one with usage_store")
    if max_requests < 1 or max_body_bytes < 1 or ping_seconds <= 0:
        raise ValueError(f"a limit is not positive: {max_requests=}, {max_body_bytes=}, {ping_seconds=}")
    used = transport or ClaudeCodeTransport()
    transports = LoginTransports(used)
    file: ClientFile | None = None
    if clients is None:
        token = token if token is not None else os.environ.get(TOKEN_VARIABLE) or None
        if token is None:
            token = new_token()
            sys.stderr.write(f"cc-server: clients of the server need the token {token}\n")
        table, database = single_client(token), open_database(None)
    else:
        path = Path(clients)
        file = ClientFile(path, transports.accept)
        table, database = file.table(), open_database(usage_store or path.with_suffix(".usage.sqlite"))
    current: Callable[[], ClientTable] = (lambda: table) if file is None else file.table
    admission = Admission(current, UsageLedger(UsageStore(database)), max_requests)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        watching = None if file is None else asyncio.create_task(file.watch())
        try:
            yield
        finally:
            if watching is not None:
                watching.cancel()
            if transport is None:
                await used.aclose()
            await admission.ledger.close()

    gate = Gate(transports, admission, max_body_bytes, ping_seconds)
    app = Starlette(routes=[Route("/{path:path}", gate)], lifespan=lifespan)
    app.state.token, app.state.needs_logins = token, table.needs_logins
    return app


def new_token() -> str:
    """Return a token that cannot be guessed."""
    return secrets.token_urlsafe(32)
