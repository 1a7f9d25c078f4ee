"""The server's gate: access, limits, records of requests.

An ASGI application over a transport. The transport defines the paths and validates requests; `server/asgi_response.py`
sends the answers, and `server/admission.py` decides about clients.
"""

import asyncio
import logging
from collections.abc import Coroutine
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

from cc_types import APIError

from ..api.cost import has_price
from ..api.failure import MethodNotAllowedError, error_response
from ..api.request import run_on_body
from ..context.request_context import request_context
from ..transport import ClaudeCodeTransport
from .admission import Admission, BudgetSpentError
from .asgi_response import relay, send_response
from .clients import Client
from .connections import trust_connection
from .request_body import RequestBody
from .request_record import RequestRecord
from .spans import request_span
from .usage_meter import Usage, UsageMeter

__all__ = ["Gate"]

logger = logging.getLogger(__name__)

# Headers that describe a request. The client's token is for this server alone.
_PASSED_ON = frozenset({b"anthropic-beta", b"anthropic-version", b"content-type", b"traceparent", b"tracestate"})

# The server's own paths; the transport has the others.
_METHODS = {"/healthz": "GET, HEAD", "/metrics": "GET", "/v1/usage": "GET"}

_NO_METRICS = "/metrics needs prometheus-client: pip install 'cc-messages[server,metrics]'"


class Gate:
    """Serves HTTP requests from a transport. Lives on the server's event loop.

    Args:
        transport: Answers the requests.
        admission: Decides about clients.
        max_body_bytes: The maximum length of a body.
        ping_seconds: The silence of a stream before a ping.
    """

    def __init__(
        self, transport: ClaudeCodeTransport, admission: Admission, max_body_bytes: int, ping_seconds: float
    ) -> None:
        self._transport, self._admission = transport, admission
        self._max_body_bytes, self._ping_seconds = max_body_bytes, ping_seconds
        self._metrics = None
        if find_spec("prometheus_client") is not None:
            from .metrics import Metrics

            self._metrics = Metrics(transport, admission)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request; cancel the work on it when the client disconnects."""
        if (response := _open_to_all(scope)) is not None:
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
            await send_response(_refusal(error, body), record, self._ping_seconds)
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
                response = await self._metrics_response(scope)
            else:
                response = JSONResponse(await self._admission.usage_report(client))
            await response(scope, receive, record)
            return
        with self._admission.place(client):
            content = await body.read()
            request = _as_request(scope, content)
            span = nullcontext()
            if (request.method, request.url.path) == ("POST", "/v1/messages"):
                await self._admission.check_budget(client)
                if client.dollars_per_day is not None:
                    await run_on_body(partial(_check_price, client), content)
                span = request_span(request, record, self._transport.api_origin)
            with span:
                await self._answer(client, request, receive, record)

    async def _answer(self, client: Client, request: httpx2.Request, receive: Receive, record: RequestRecord) -> None:
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
                await _unless(leaving(), relay(self._transport, request, deliver, self._ping_seconds))
            finally:
                record.report, record.model = context.report, context.model
                record.usage, record.response = meter.reported, meter.message

    async def _metrics_response(self, scope: Scope) -> Response:
        if self._metrics is None:
            raise APIError(status=404, message=_NO_METRICS)
        accept = Headers(scope=scope).get("accept", "")
        content, content_type = self._metrics.write(accept, await self._admission.usage())
        return Response(content, headers={"content-type": content_type})


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


def _open_to_all(scope: Scope) -> Response | None:
    """Return the answer to a request that needs no token: a health check."""
    match scope["method"], scope["path"]:
        case "GET" | "HEAD", "/healthz":
            return JSONResponse({"status": "ok"})
        case "HEAD", "/":
            return Response()
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
    try:
        url = httpx2.URL("http://claude").copy_with(raw_path=path + query)
    except httpx2.InvalidURL as error:
        message = f"The path of the request is invalid: {path.decode(errors='replace')[:100]}"
        raise APIError(status=400, message=message) from error
    return httpx2.Request(scope["method"], url, headers=headers, content=body)


def _check_price(client: Client, body: bytes) -> None:
    """Refuse a model without a list price to a client with a budget in dollars.

    Aliases are not on the price list, but the models in their answers are.
    """
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
    if isinstance(error, BudgetSpentError):
        response.headers["x-should-retry"] = "false"
    if body.is_ambiguous:  # so that the rest is not parsed as another request
        response.headers["connection"] = "close"
    return response
