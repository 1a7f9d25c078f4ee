"""The server's gate: access, concurrency, and size limits.

An ASGI application over a transport. The transport defines the paths and validates requests; `server/asgi_response.py`
sends the answers.
"""

import asyncio
import hmac
import logging
from dataclasses import dataclass
from urllib.parse import quote

import httpx2
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from cc_types import APIError

from ..api.response import REQUEST_ID, error_response, new_request_id
from ..transport import ClaudeCodeTransport
from .asgi_response import relay, send_response
from .connections import trust_connection
from .request_body import ClientGone, RequestBody

__all__ = ["Gate", "Limits"]

logger = logging.getLogger(__name__)

# Headers that describe a request. The client's token is for this server alone.
_PASSED_ON = frozenset({b"anthropic-beta", b"anthropic-version", b"content-type", b"traceparent", b"tracestate"})

# A place is free as soon as one of the answers has ended.
_BUSY_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of access, and of a stream's silence.

    Raises:
        ValueError: A limit is not positive.
    """

    max_requests: int
    max_body_bytes: int
    ping_seconds: float

    def __post_init__(self) -> None:
        if self.max_requests < 1 or self.max_body_bytes < 1 or self.ping_seconds <= 0:
            raise ValueError(f"the limits of the server must be positive: {self}")


class Gate:
    """Serves HTTP requests from a transport. Lives on the event loop of its server."""

    def __init__(self, transport: ClaudeCodeTransport, token: str, limits: Limits) -> None:
        self._transport = transport
        self._token = token.encode()
        self._limits = limits
        self._in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; cancel its work when its client disconnects."""
        if (response := _open_to_all(scope)) is not None:
            await response(scope, receive, send)
            return
        outgoing, body = _Outgoing(send), RequestBody(scope, receive)
        try:
            self._check(scope, body)
            await self._serve(scope, body, receive, outgoing)
        except ClientGone:
            return
        except Exception as error:
            if outgoing.has_begun:
                raise
            await body.drain(self._limits.max_body_bytes)
            response = error_response(_as_api_error(error))
            if body.is_ambiguous:  # so that its rest is not parsed as another request
                response.headers["connection"] = "close"
            await send_response(response, outgoing, self._limits.ping_seconds)

    def _check(self, scope: Scope, body: RequestBody) -> None:
        if body.is_ambiguous:
            raise APIError(status=400, message="A request has a Content-Length or a Transfer-Encoding, not both")
        if not any(hmac.compare_digest(token, self._token) for token in _tokens(scope)):
            raise APIError(
                status=401,
                message="The token of this server is missing or wrong: it goes into x-api-key or Authorization: Bearer",
            )
        trust_connection(scope)
        if self._in_progress >= self._limits.max_requests:
            raise APIError(
                status=429,
                message=f"This server answers at most {self._limits.max_requests} requests at a time",
                retry_after=_BUSY_RETRY_SECONDS,
            )

    async def _serve(self, scope: Scope, body: RequestBody, receive: Receive, send: Send) -> None:
        self._in_progress += 1
        try:
            request = _as_request(scope, await body.read(self._limits.max_body_bytes))
            work = relay(self._transport, request, send, self._limits.ping_seconds)
            await _while_there(receive, asyncio.ensure_future(work))
        finally:
            self._in_progress -= 1


class _Outgoing:
    """ASGI's `send`, which remembers whether a response has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        self.has_begun = True
        await self._send(message)


async def _while_there(receive: Receive, work: asyncio.Future[None]) -> None:
    """Await `work`, and cancel it when the client disconnects."""
    gone = asyncio.ensure_future(_disconnected(receive))
    gone.add_done_callback(lambda _: work.cancel())
    try:
        await work
    except asyncio.CancelledError:
        if not gone.done():
            raise
    finally:
        work.cancel()
        gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _open_to_all(scope: Scope) -> Response | None:
    """Return the answer to a request that needs no token: the health check."""
    headers = {REQUEST_ID: new_request_id()}
    match scope["method"], scope["path"]:
        case "GET" | "HEAD", "/healthz":
            return JSONResponse({"status": "ok"}, headers=headers)
        case "HEAD", "/":
            return Response(headers=headers)
        case _:
            return None


def _tokens(scope: Scope) -> list[bytes]:
    tokens: list[bytes] = []
    for name, value in scope["headers"]:
        scheme, _, credentials = value.partition(b" ")
        if name == b"x-api-key":
            tokens.append(value)
        elif name == b"authorization" and scheme.lower() == b"bearer":
            tokens.append(credentials.strip())
    return tokens


def _as_request(scope: Scope, body: bytes) -> httpx2.Request:
    headers = [(name, value) for name, value in scope["headers"] if name in _PASSED_ON]
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    url = httpx2.URL("http://claude").copy_with(raw_path=path + query)
    return httpx2.Request(scope["method"], url, headers=headers, content=body)


def _as_api_error(error: Exception) -> APIError:
    if isinstance(error, APIError):
        return error
    logger.error("Serving a request failed", exc_info=error)
    return APIError(status=500, message="The server failed; its log says more")
