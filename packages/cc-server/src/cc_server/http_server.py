"""The server gate: access, limits, bodies, records of requests, and answers with pings.

An ASGI application over a transport. The transport defines the paths and validates requests; `admission.py`
decides about clients.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, nullcontext, suppress
from functools import partial
from importlib.util import find_spec
from urllib.parse import quote

import httpx2
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import override

from cc_messages import request_context
from cc_messages.internals import (
    FinalError,
    MethodNotAllowedError,
    api_path,
    error_body,
    error_response,
    has_price,
    run_on_body,
    sse,
)
from cc_types import APIError, CLINotFoundError, JsonValue

from . import openai
from .admission import Admission
from .clients import Client, LoginTransports
from .connections import trust_connection
from .request_record import RequestRecord
from .status import ServerStatus, page_response
from .streams import unless, with_pings

logger = logging.getLogger(__name__)

MAX_VALUES = 250_000
"""The maximum number for a request body. A conversation with 10,000 blocks has some 70,000."""

# 32 MB over a slow line take some ten seconds; a slower client occupies a place for nothing.
_READ_SECONDS = 60.0

# A client that is refused while it sends often reads the answer only after it has sent everything.
_DRAIN_SECONDS = 5.0

# Headers that describe a request. The client token is for this server alone.
_PASSED_ON = frozenset({b"anthropic-beta", b"anthropic-version", b"content-type", b"traceparent", b"tracestate"})

# A client that reads nothing for so long counts as gone, even with an open connection.
_SEND_SECONDS = 120.0

_PING = sse({"type": "ping"})

# Answers to health checks, which need no token.
_HEALTHY = JSONResponse({"status": "ok"})
_READINESS = frozenset({("GET", "/readyz"), ("HEAD", "/readyz")})
_OPEN = {
    ("GET", "/"): page_response(), ("HEAD", "/"): Response(),
    ("GET", "/healthz"): _HEALTHY, ("HEAD", "/healthz"): _HEALTHY,
}  # fmt: skip

# The server paths; the transport has the others.
_METHODS = {
    "/": "GET, HEAD", "/healthz": "GET, HEAD", "/readyz": "GET, HEAD", "/metrics": "GET", "/v1/status": "GET",
    "/v1/usage": "GET",
}  # fmt: skip
# Paths for tokens with access to figures.
_FIGURES = frozenset({("GET", "/metrics"), ("GET", "/v1/status")})


class Gate:
    """Serves HTTP requests, on the server event loop; after `ping_seconds` of silence a stream gets a ping."""

    def __init__(
        self, transports: LoginTransports, admission: Admission, max_body_bytes: int, ping_seconds: float
    ) -> None:
        self._transports, self._admission = transports, admission
        self._max_body_bytes, self._ping_seconds = max_body_bytes, ping_seconds
        self._status = ServerStatus(transports.own, admission)
        self._metrics = None
        if find_spec("prometheus_client") is not None:
            from .metrics import Metrics

            self._metrics = Metrics(transports.own, admission)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; cancel the work on it when the client disconnects."""
        scope["path"] = api_path(scope["path"].removeprefix(scope.get("root_path", "").rstrip("/")))
        place = (scope["method"], scope["path"])
        if (response := self._readiness() if place in _READINESS else _OPEN.get(place)) is not None:
            await response(scope, receive, send)
            return
        request = _Request(scope, receive, self._max_body_bytes)
        record = RequestRecord(scope, send, is_openai=openai.speaks(*place, request.headers))
        self._status.begin(record)
        try:
            await self._serve(request, record)
        except ClientDisconnect:
            if not record.has_ended:
                record.error = "client_left"
        except Exception as error:
            if record.has_begun:
                raise
            await request.drain()
            if not isinstance(error, APIError):
                logger.error("Serving a request failed", exc_info=error)
                error = APIError(status=500, message="The server failed; its log says more")
            response = _error_response(error, is_openai=record.is_openai)
            if request.is_ambiguous:  # so that the rest is not parsed as another request
                response.headers["connection"] = "close"
            await self._send(response, record, is_openai=record.is_openai)
        finally:
            record.log()
            self._status.end(record)
            if self._metrics is not None:
                self._metrics.count_request(record)

    async def _serve(self, request: "_Request", record: RequestRecord) -> None:
        if request.is_ambiguous:
            raise APIError(status=400, message="A request has a Content-Length or a Transfer-Encoding, not both")
        client = self._admission.client(request.tokens())
        record.client = client.name
        trust_connection(request.scope)
        method, path = record.method, record.path
        self._admission.check_access(client, to_metrics=(method, path) in _FIGURES)
        if allowed := _METHODS.get(path):
            if method != "GET":
                raise MethodNotAllowedError(method, path, allowed)
            if path == "/metrics":
                if self._metrics is None:
                    advice = "pip install 'cc-server[metrics]'"
                    raise APIError(status=404, message=f"/metrics needs prometheus-client: {advice}")
                accept = request.headers.get("accept", "")
                content, content_type = self._metrics.write(accept, await self._admission.usage())
                response = Response(content, headers={"content-type": content_type})
            elif path == "/v1/status":
                response = await self._status.response(request.headers.get("accept", ""))
            else:
                response = JSONResponse(await self._admission.usage_report(client))
            await response(request.scope, request.receive, record)
            return
        transport = self._transports.transport(client)  # now: its login may leave the file before the next line
        self._admission.check_login(client)
        with self._admission.place(client):
            content = await request.content()
            if record.is_openai:
                openai.check(method, path)
            passed_on = _as_request(request.scope, content, is_openai=record.is_openai)
            span = nullcontext()
            if (passed_on.method, passed_on.url.path) == ("POST", "/v1/messages"):
                await self._admission.check_budget(client)
                if client.dollars_per_day is not None:
                    await run_on_body(partial(_check_price, client), content)
                span = record.span(passed_on, transport.api_origin)
            handle = transport.handle_async_request
            if record.is_openai:
                handle = openai.handler(path, handle)
            with span:
                await self._answer(client, handle, passed_on, request.receive, record)

    async def _answer(
        self, client: Client, handle: openai.Handle, request: httpx2.Request, receive: Receive, record: RequestRecord
    ) -> None:  # fmt: skip
        loop, ledger = asyncio.get_running_loop(), self._admission.ledger
        has_left, is_counted = asyncio.Event(), asyncio.Event()

        def count(message: Mapping[str, JsonValue]) -> None:
            if (usage := record.count(message)) is None:
                return
            ledger.add(client.name, usage.total, str(message.get("model", ""))[:100])
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

        with request_context(on_usage=count) as context:
            record.context = context

            async def leaving() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                has_left.set()
                if client.has_budget and context.report is not None:  # a process has the request
                    await is_counted.wait()

            try:
                await unless(leaving(), self._relay(handle, request, deliver, is_openai=record.is_openai))
            finally:
                record.report, record.model = context.report, context.model

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

    async def _relay(self, handle: openai.Handle, request: httpx2.Request, send: Send, *, is_openai: bool) -> None:
        """Answer `request`. Cancelling this ends the work on it."""
        try:
            response = await handle(request)
        except httpx2.TransportError as error:
            response = _error_response(_server_error(error), is_openai=is_openai)
        try:
            await self._send(response, send, is_openai=is_openai)
        finally:
            await response.aclose()

    async def _send(self, response: httpx2.Response, send: Send, *, is_openai: bool) -> None:
        """Send a response piece by piece; a stream with pings in silence, and with an error event if it breaks off."""

        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(_SEND_SECONDS):
                    await send(message)
            except TimeoutError as error:
                raise ClientDisconnect from error

        headers = [(name.lower(), value) for name, value in response.headers.raw]
        await send_in_time({"type": "http.response.start", "status": response.status_code, "headers": headers})
        body, ending = response.aiter_bytes(), b""
        is_event_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        try:
            ping, seconds = openai.PING if is_openai else _PING, self._ping_seconds if is_event_stream else None
            async with aclosing(with_pings(body, seconds, ping)) as chunks:
                async for chunk in chunks:
                    await send_in_time({"type": "http.response.body", "body": chunk, "more_body": True})
        except httpx2.TransportError as error:
            if not is_event_stream:
                raise
            broken = error_body(_server_error(error))
            ending = openai.error_event(broken) if is_openai else sse(broken)
        await send_in_time({"type": "http.response.body", "body": ending})


class _Request(Request):
    """A client's request, whose body is read once, up to `limit` bytes."""

    def __init__(self, scope: Scope, receive: Receive, limit: int) -> None:
        super().__init__(scope, receive)
        self._limit = limit

    @property
    def is_ambiguous(self) -> bool:
        """True if two headers define the body end, so that a proxy and this server may disagree."""
        return {"content-length", "transfer-encoding"} <= {*self.headers}

    def tokens(self) -> list[bytes]:
        """Return the tokens in the headers."""
        logins = [value.partition(" ") for value in self.headers.getlist("authorization")]
        bearers = [credentials.strip() for scheme, _, credentials in logins if scheme.lower() == "bearer"]
        return [token.encode("latin-1") for token in (*self.headers.getlist("x-api-key"), *bearers)]

    async def content(self) -> bytes:
        """Return the whole body, checked."""
        for name, value in self.headers.items():
            if name == "content-encoding" and value.lower() != "identity":
                raise APIError(status=415, message="Compressed request bodies are not accepted")
            if name == "content-length" and value.isdecimal() and int(value) > self._limit:
                raise self._too_large()
        try:
            async with asyncio.timeout(_READ_SECONDS):
                content = await self.body()
        except TimeoutError as error:
            raise APIError(status=408, message=f"The request did not come within {_READ_SECONDS:g} s") from error
        await run_on_body(check_values, content)
        return content

    async def drain(self) -> None:
        """Read the rest from a refused client, up to the limit, so that the client sees the answer."""
        with suppress(TimeoutError, ClientDisconnect, APIError, RuntimeError):  # the last: nothing is left
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self.stream():
                    pass

    @override
    async def stream(self) -> AsyncGenerator[bytes]:
        length = 0
        async for chunk in super().stream():
            length += len(chunk)
            if length > self._limit:
                raise self._too_large()
            yield chunk

    def _too_large(self) -> APIError:
        message = f"Request exceeds the maximum allowed number of bytes, which is {self._limit}"
        return APIError(status=413, message=message)


def check_values(body: bytes, limit: int = MAX_VALUES) -> None:
    """Check that a body has at most `limit` JSON values: millions would occupy a server for minutes.

    They are counted in the bytes, in at most some 10 ms a megabyte. An empty array or object counts twice. If the body
    is not valid JSON, the check covers the part before the error.
    """
    if _separators(body) < limit:  # separators in strings included
        return
    body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    # Every second piece is a string, and there are at most two for a value: the key and the value.
    pieces = body.split(b'"', 4 * limit)
    if len(pieces) > 4 * limit or _separators(b" ".join(pieces[::2])) >= limit:
        message = f"Request exceeds the maximum allowed number of JSON values, which is {limit}"
        raise APIError(status=413, message=message)


def _separators(text: bytes) -> int:
    """Count the characters after which a value of an array or object can begin."""
    return sum(map(text.count, (b",", b"[", b"{")))


def _error_response(error: APIError, *, is_openai: bool) -> httpx2.Response:
    response = error_response(error)
    return openai.error_response(response) if is_openai else response


def _as_request(scope: Scope, body: bytes, *, is_openai: bool) -> httpx2.Request:
    headers = [(name, value) for name, value in scope["headers"] if name in _PASSED_ON]
    path = quote(scope["path"]).encode()
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    if is_openai:
        path, query = openai.messages_path(scope["path"])
    try:
        url = httpx2.URL("http://claude").copy_with(raw_path=path + query)
    except httpx2.InvalidURL as error:
        message = f"The path of the request is invalid: {(path + query).decode(errors='replace')[:100]}"
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


def _server_error(error: httpx2.TransportError) -> APIError:
    """Return the error between this server and the API."""
    # Without the text, which can be the API's and quote the request.
    logger.warning("A request failed: %s", type(error.__cause__ or error).__name__)
    if isinstance(error.__cause__, CLINotFoundError):
        return FinalError(status=500, message=str(error))
    return APIError(status=502, message=str(error))
