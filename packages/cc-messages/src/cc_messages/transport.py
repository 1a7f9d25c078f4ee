"""`ClaudeCodeTransport`: an `httpx2` transport that answers the Messages API by driving Claude Code.

Give it to an `httpx2.AsyncClient`, and that to any client of the Anthropic API. Where the request goes to does not
matter; only its path does.
"""

import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import httpx2

from cc_session import (
    Timeouts,
    on_background,
    start_on_background,
    tell_background,
)
from cc_types import APIError, ClaudeCodeError

from .cli_tools import current_beside
from .engine import serve
from .exchange import Body, Exchange
from .launcher import Launcher
from .models import catalogue, find, page, resolve
from .passed_headers import passed_headers
from .pool import Route, WorkerPool
from .request import parse_object, parse_request
from .response import document, error_response

__all__ = ["ClaudeCodeTransport"]

_MODELS = "/v1/models"

# Which the API knows; what does not begin so may be an alias of Claude Code's.
_IDS_BEGIN = "claude-"


class ClaudeCodeTransport(httpx2.AsyncBaseTransport):
    """Answers the Messages API from a pool of Claude Code processes.

    Served are `POST /v1/messages`, `POST /v1/messages/count_tokens`, `GET /v1/models` and `GET /v1/models/{id}`. It may
    be used from any number of threads and asyncio loops at once. Nothing is started before the first request.

    Args:
        size: How many processes there may be, which is how many requests can be answered at the same time; more
            wait. An idle process takes about 85 MB of its own.
        idle_seconds: After how long without a request a process is ended.
        env: Environment variables for the processes, on top of this one's, such as `ANTHROPIC_API_KEY`.
        cwd: The folder they run in; an empty private one if None.
        cli_path: The CLI to run; the one in the wheel of claude-agent-sdk if None.
        timeouts: How long to wait for a process.
    """

    def __init__(
        self,
        *,
        size: int = 8,
        idle_seconds: float = 300.0,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        cli_path: str | Path | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        if size < 1:
            raise ValueError(f"size must be at least 1, not {size}")
        self._launcher = Launcher(env or {}, cwd, cli_path, timeouts or Timeouts())
        self._pool = WorkerPool(self._launcher.open, size=size, idle_seconds=idle_seconds)
        # A transport that is forgotten takes its processes along.
        self._finalizer = weakref.finalize(self, _close_soon, self._pool)
        self._finalizer.atexit = False  # sessions close themselves at exit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one HTTP request.

        Raises:
            httpx2.ReadError: The process failed or lost the API; the cause is a `ClaudeCodeError`.
            httpx2.ReadTimeout: Nothing came within the request's read timeout.
            httpx2.TransportError: The API could not be reached to count tokens.
        """
        try:
            match request.method, request.url.path:
                case "POST", "/v1/messages":
                    return await self._answer(request)
                case "POST", "/v1/messages/count_tokens":
                    return await self._count(request)
                case "GET", path if path == _MODELS or path.startswith(f"{_MODELS}/"):
                    return await self._show_models(request)
                case method, path:
                    raise APIError(status=404, message=f"{method} {path} is not served by Claude Code")
        except APIError as error:
            return error_response(error)
        except ClaudeCodeError as error:
            raise httpx2.ReadError(str(error)) from error

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        body = await request.aread()
        headers = passed_headers(request.headers.multi_items(), self._launcher.env)
        parsed = parse_request(body, request.headers.get("anthropic-beta", ""), current_beside(), headers)
        exchange = Exchange()
        timeout = request.extensions.get("timeout", {}).get("read")
        start_on_background(serve, self._pool, parsed, exchange)
        head = await exchange.head(timeout)
        return httpx2.Response(head.status, headers=head.headers, stream=Body(exchange, timeout), request=request)

    async def _count(self, request: httpx2.Request) -> httpx2.Response:
        api, fields = self._launcher.api, parse_object(await request.aread())
        if isinstance(model := fields.get("model"), str) and not model.startswith(_IDS_BEGIN):
            fields["model"] = resolve(await on_background(self._launcher.models), model)
        return await api.count(fields, request)

    async def _show_models(self, request: httpx2.Request) -> httpx2.Response:
        models = catalogue(await on_background(self._launcher.models))
        name = request.url.path.removeprefix(_MODELS).removeprefix("/")
        return document(find(models, name) if name else page(models, dict(request.url.params)))

    async def aclose(self) -> None:
        """End all processes, those in use too. A later request starts new ones."""
        await on_background(self._pool.aclose)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that run."""
        return self._pool.pids

    @property
    def routes(self) -> Mapping[Route, int]:
        """How many requests were answered in which way."""
        return dict(self._pool.routes)

    @property
    def start_seconds(self) -> list[float]:
        """How long each start of a process took, in order."""
        return list(self._pool.start_seconds)

    def __repr__(self) -> str:
        return f"<ClaudeCodeTransport {self._pool!r}>"


def _close_soon(pool: WorkerPool) -> None:
    tell_background(pool.aclose)
