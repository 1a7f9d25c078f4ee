"""The server's gate: access, limits, records of requests, and answers with pings.

An ASGI application over a transport. The transport defines the paths and validates requests; `server/admission.py`
decides about clients.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import nullcontext, suppress
from functools import partial
from importlib.util import find_spec
from urllib.parse import quote

import httpx2
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from cc_types import APIError, CLINotFoundError

from ..api.cost import has_price
from ..api.request import run_on_body
from ..api.response import FinalError, MethodNotAllowedError, error_body, error_response, sse
from ..context import request_context
from ..transport import ClaudeCodeTransport
from .admission import Admission
from .clients import Client, LoginTransports
from .connections import trust_connection
from .request_body import RequestBody
from .request_record import RequestRecord
from .usage import Usage, UsageMeter

__all__ = ["Gate"]

logger = logging.getLogger(__name__)

# Headers that describe a request. The client's token is for this server alone.
_PASSED_ON = frozenset({b"anthropic-beta", b"anthropic-version", b"content-type", b"traceparent", b"tracestate"})

# A client that reads nothing for so long counts as gone, even with an open connection.
_SEND_SECONDS = 120.0

_PING = sse({"type": "ping"})

# Answers to health checks, which need no token.
_HEALTHY = JSONResponse({"status": "ok"})
_READINESS = frozenset({("GET", "/readyz"), ("HEAD", "/readyz")})
_OPEN = {("GET", "/healthz"): _HEALTHY, ("HEAD", "/healthz"): _HEALTHY, ("HEAD", "/"): Response()}

# The server's own paths; the transport has the others.
_METHODS = {"/healthz": "GET, HEAD", "/readyz": "GET, HEAD", "/metrics": "GET", "/v1/usage": "GET"}


class Gate:
    """Serves HTTP requests, on the server's event loop; after `ping_seconds` of silence a stream gets a ping."""

    def __init__(
        self, transports: LoginTransports, admission: Admission, max_body_bytes: int, ping_seconds: float
    ) -> None:
        self._transports, self._admission = transports, admission
        self._max_body_bytes, self._ping_seconds = max_body_bytes, ping_seconds
        self._metrics = None
        if find_spec("prometheus_client") is not None:
            from .metrics import Metrics

            self._metrics = Metrics(transports.own, admission)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; cancel the work on it when the client disconnects."""
        place = (scope["method"], scope["path"])
        if (response := self._readiness() if place in _READINESS else _OPEN.get(place)) is not None:
            await response(scope, receive, send)
            return
        record = RequestRecord(scope, send)
        body = RequestBody(scope, receive, self._max_body_bytes)
        try:
            await self._serve(scope, body, receive, record)
        except ClientDisconnect:
            if not record.has_ended:
                record.error = "client_left"
        except Exception as error:
            if record.has_begun:
                raise
            await body.drain()
            await self._send(_refusal(error, body), record)
        finally:
            record.log()
            if self._metrics is not None:
                self._metrics.count_request(record)

    async def _serve(self, scope: Scope, body: RequestBody, receive: Receive, record: RequestRecord) -> None:
        if body.is_ambiguous:
            raise APIError(status=400, message="A request has a Content-Length or a Transfer-Encoding, not both")
        client = self._admission.client(_tokens(scope))
        record.client = client.name
        trust_connection(scope)
        method, path = scope["method"], scope["path"]
        self._admission.check_access(client, to_metrics=(method, path) == ("GET", "/metrics"))
        if allowed := _METHODS.get(path):
            if method != "GET":
                raise MethodNotAllowedError(method, path, allowed)
            if path == "/metrics":
                if self._metrics is None:
                    advice = "pip install 'cc-messages[server,metrics]'"
                    raise APIError(status=404, message=f"/metrics needs prometheus-client: {advice}")
                accept = Headers(scope=scope).get("accept", "")
                content, content_type = self._metrics.write(accept, await self._admission.usage())
                response = Response(content, headers={"content-type": content_type})
            else:
                response = JSONResponse(await self._admission.usage_report(client))
            await response(scope, receive, record)
            return
        self._admission.check_login(client)
        transport = self._transports.transport(client)  # now: the login may end before the body has come
        with self._admission.place(client):
            content = await body.read()
            request = _as_request(scope, content)
            span = nullcontext()
            if (request.method, request.url.path) == ("POST", "/v1/messages"):
                await self._admission.check_budget(client)
                if client.dollars_per_day is not None:
                    await run_on_body(partial(_check_price, client), content)
                span = record.span(request, transport.api_origin)
            with span:
                await self._answer(client, transport, request, receive, record)

    async def _answer(
        self, client: Client, transport: ClaudeCodeTransport, request: httpx2.Request, receive: Receive,
        record: RequestRecord,
    ) -> None:  # fmt: skip
        loop, ledger = asyncio.get_running_loop(), self._admission.ledger
        has_left, is_counted = asyncio.Event(), asyncio.Event()

        def count(usage: Usage) -> None:
            ledger.add(client.name, usage.total)
            if self._metrics is not None:
                self._metrics.count_usage(client.name, usage)
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(is_counted.set)

        async def deliver(message: Message) -> None:
            if client.has_budget:
                await ledger.written()
            if has_left.is_set():
                raise ClientDisconnect
            await record(message)

        meter = UsageMeter(count)
        with request_context(on_usage=meter) as context:

            async def leaving() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                has_left.set()
                if client.has_budget and context.report is not None:  # a process has the request
                    await is_counted.wait()

            try:
                await _unless(leaving(), self._relay(transport, request, deliver))
            finally:
                record.report, record.model = context.report, context.model
                record.usage, record.response = meter.reported, meter.message

    def _readiness(self) -> Response:
        """Report whether a new request would soon have a process; start the first if it is missing."""
        transport = self._transports.own
        stats, problem = transport.stats(), ""
        if stats.waiting >= stats.size:
            problem = "as many requests wait as there may be processes"
        elif not stats.running:
            with suppress(ValueError):  # no process is kept ready
                transport.start()
                problem = "no process is ready"
        return JSONResponse({"status": problem}, 503) if problem else _HEALTHY

    async def _relay(self, transport: ClaudeCodeTransport, request: httpx2.Request, send: Send) -> None:
        """Answer `request`. Cancelling this ends the work on it."""
        try:
            response = await transport.handle_async_request(request)
        except httpx2.TransportError as error:
            response = error_response(_server_error(error))
        try:
            await self._send(response, send)
        finally:
            await response.aclose()

    async def _send(self, response: httpx2.Response, send: Send) -> None:
        """Send a response piece by piece."""

        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(_SEND_SECONDS):
                    await send(message)
            except TimeoutError as error:
                raise ClientDisconnect from error

        headers = [(name.lower(), value) for name, value in response.headers.raw]
        await send_in_time({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for chunk in self._chunks(response):
            await send_in_time({"type": "http.response.body", "body": chunk, "more_body": True})
        await send_in_time({"type": "http.response.body"})

    async def _chunks(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        """Yield the body; an event stream gets pings during silence, and an error event if it breaks off."""
        body = response.aiter_bytes()
        is_event_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        try:
            async for chunk in _with_pings(body, self._ping_seconds) if is_event_stream else body:
                yield chunk
        except httpx2.TransportError as error:
            if not is_event_stream:
                raise
            yield sse(error_body(_server_error(error)))


async def _unless(leaving: Coroutine[None, None, None], work: Coroutine[None, None, None]) -> None:
    """Await `work`, and cancel it when `leaving` ends."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(leaving)
    gone.add_done_callback(lambda _: working.cancel())
    try:
        await working
    except asyncio.CancelledError:
        if not gone.done():
            raise
        raise ClientDisconnect from None
    finally:
        working.cancel()
        gone.cancel()


async def _with_pings(chunks: AsyncIterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    """Yield chunks, each of which ends with an event, and a ping after every `seconds` without a chunk."""

    async def read() -> bytes:
        return await anext(chunks, b"")

    reading = asyncio.ensure_future(read())
    try:
        while True:
            done, _ = await asyncio.wait({reading}, timeout=seconds)
            if not done:
                yield _PING
            elif chunk := reading.result():
                yield chunk
                reading = asyncio.ensure_future(read())
            else:
                return
    finally:
        reading.cancel()


def _tokens(scope: Scope) -> list[bytes]:
    headers = Headers(scope=scope)
    logins = [value.partition(" ") for value in headers.getlist("authorization")]
    bearers = [credentials.strip() for scheme, _, credentials in logins if scheme.lower() == "bearer"]
    return [token.encode("latin-1") for token in (*headers.getlist("x-api-key"), *bearers)]


def _as_request(scope: Scope, body: bytes) -> httpx2.Request:
    headers = [(name, value) for name, value in scope["headers"] if name in _PASSED_ON]
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    try:
        url = httpx2.URL("http://claude").copy_with(raw_path=path + query)
    except httpx2.InvalidURL as error:
        message = f"The path of the request is invalid: {path.decode(errors='replace')[:100]}"
        raise APIError(status=400, message=message) from error
    return httpx2.Request(scope["method"], url, headers=headers, content=body)


def _check_price(client: Client, body: bytes) -> None:
    """Refuse a model without a list price to a client with a budget in dollars; an alias's answers name the model."""
    try:
        model = from_json(body).get("model")
    except (ValueError, AttributeError):  # the transport refuses such a body
        return
    if isinstance(model, str) and model.startswith("claude-") and not has_price(model):
        raise APIError(
            status=400,
            message=f"model: {model[:100]} has no list price, so the client {client.name}, whose budget is in dollars, "
            "cannot use it",
        )


def _refusal(error: Exception, body: RequestBody) -> httpx2.Response:
    if not isinstance(error, APIError):
        logger.error("Serving a request failed", exc_info=error)
        error = APIError(status=500, message="The server failed; its log says more")
    response = error_response(error)
    if body.is_ambiguous:  # so that the rest is not parsed as another request
        response.headers["connection"] = "close"
    return response


def _server_error(error: httpx2.TransportError) -> APIError:
    """Return the error between this server and the API."""
    # Without the text, which can be the API's and quote the request.
    logger.warning("A request failed: %s", type(error.__cause__ or error).__name__)
    if isinstance(error.__cause__, CLINotFoundError):
        return FinalError(status=500, message=str(error))
    return APIError(status=502, message=str(error))
