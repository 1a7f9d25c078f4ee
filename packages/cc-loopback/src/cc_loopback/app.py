"""The Messages API as an ASGI application.

It reads a request, records it, and picks the response: a fault, an error, or what the responder says. Sockets, threads
and the CLI's environment are unknown here.
"""

import asyncio
import inspect
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from .checks import problem_with
from .errors import error_body, error_type_for
from .events import stream_events
from .faults import Fault, FaultQueue
from .ids import new_id
from .models import model_info, model_page
from .reply import input_tokens, make_message
from .responses import cut_json_response, error_response, event_response
from .types import Call, JsonObject, Reply, Respond

MESSAGES = "/v1/messages"
COUNT_TOKENS = "/v1/messages/count_tokens"
MODELS = "/v1/models"

_log = logging.getLogger("cc_loopback")
_NO_FAULT = Fault()
# A broken responder stays broken: without this header clients would try it several times, with pauses.
_DO_NOT_RETRY = {"x-should-retry": "false"}


@dataclass(slots=True)
class Record:
    """What came in, and what went wrong in the responder. Only ever appended to by the application."""

    calls: list[Call] = field(default_factory=list[Call])
    requests: list[JsonObject] = field(default_factory=list[JsonObject])
    errors: list[BaseException] = field(default_factory=list[BaseException])

    def clear(self) -> None:
        """Empty the three lists; they stay the same objects, which users may hold."""
        for entries in (self.calls, self.requests, self.errors):
            entries.clear()


class MessagesApp:
    """One responder behind the Messages API."""

    def __init__(self, respond: Respond, record: Record, faults: FaultQueue, event_delay: float) -> None:
        self.respond = respond
        self._record = record
        self._faults = faults
        self._event_delay = event_delay

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request; the work on it ends as soon as the client is gone."""
        try:
            call = await _read_call(Request(scope, receive))
        except ClientDisconnect:
            return
        work = asyncio.ensure_future(self._serve(call, scope, receive, send))
        gone = asyncio.ensure_future(_client_gone(receive))
        gone.add_done_callback(lambda _: work.cancel())
        try:
            await work
        except asyncio.CancelledError:
            if not gone.done():
                raise
        finally:
            gone.cancel()

    async def _serve(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        self._note(call)
        response = await self._response(call)
        _log_call(call, response.status_code)
        await response(scope, receive, send)

    def _note(self, call: Call) -> None:
        self._record.calls.append(call)
        if (call.method, call.path) == ("POST", MESSAGES) and call.body is not None:
            self._record.requests.append(call.body)

    async def _response(self, call: Call) -> Response:
        request_id = new_id("req")
        fault = self._faults.take(call.path) or _NO_FAULT
        await asyncio.sleep(fault.delay)
        if fault.refuses and fault.status is not None:
            return error_response(fault.status, fault.error_type, fault.message, request_id, fault.headers)
        match call.method, call.path:
            case "POST", "/v1/messages":
                return await self._messages(call, fault, request_id)
            case "POST", "/v1/messages/count_tokens":
                return _count_tokens(call, request_id)
            case "GET", path if path == MODELS or path.startswith(f"{MODELS}/"):
                return _models(call, request_id)
            case _:
                message = f"{call.method} {call.path} is not served here"
                return error_response(404, "not_found_error", message, request_id)

    async def _messages(self, call: Call, fault: Fault, request_id: str) -> Response:
        if problem := problem_with(call):
            return error_response(400, "invalid_request_error", problem, request_id)
        body = cast("JsonObject", json.loads(call.raw))
        try:
            message = make_message(await self._ask(body), body)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # A test's `pytest.fail()` must come out too, and the server must live on.
            self._record.errors.append(error)
            text = f"{type(error).__name__}: {error}"
            return error_response(500, "api_error", text, request_id, _DO_NOT_RETRY)
        headers = {"request-id": request_id, **fault.headers}
        if body.get("stream"):
            return self._stream(message, fault, headers)
        return _whole(message, fault, headers)

    async def _ask(self, body: JsonObject) -> Reply:
        reply = self.respond(body)
        return await reply if inspect.isawaitable(reply) else reply

    def _stream(self, message: JsonObject, fault: Fault, headers: Mapping[str, str]) -> Response:
        events = list(stream_events(message))
        if fault.after_events is None:
            return event_response(events, headers, pause=self._event_delay)
        events = events[: fault.after_events]
        if fault.status is not None:
            events.append(error_body(fault.error_type, fault.message, headers["request-id"]))
        return event_response(events, headers, pause=self._event_delay, cut=fault.status is None)


def _whole(message: JsonObject, fault: Fault, headers: Mapping[str, str]) -> Response:
    if fault.after_events is None:
        return JSONResponse(message, headers=headers)
    if fault.status is None:
        return cut_json_response(message, headers)
    # Nothing of a message that is not streamed has been sent yet when it fails, so the status can still say so.
    return error_response(fault.status, fault.error_type, fault.message, headers["request-id"], fault.headers)


def _count_tokens(call: Call, request_id: str) -> Response:
    if problem := problem_with(call, counting=True):
        return error_response(400, "invalid_request_error", problem, request_id)
    return JSONResponse({"input_tokens": input_tokens(call.body or {})}, headers={"request-id": request_id})


def _models(call: Call, request_id: str) -> Response:
    headers = {"request-id": request_id}
    name = call.path.removeprefix(MODELS).removeprefix("/")
    if name:
        info = model_info(name)
        return JSONResponse(info, headers=headers) if info else _refuse(404, f"model: {name}", request_id)
    try:
        return JSONResponse(model_page(call.query), headers=headers)
    except ValueError as error:
        return _refuse(400, f"query: {error}", request_id)


def _refuse(status: int, message: str, request_id: str) -> Response:
    return error_response(status, error_type_for(status), message, request_id)


async def _read_call(request: Request) -> Call:
    raw = await request.body()
    try:
        parsed: object = json.loads(raw) if raw else None
    except ValueError:
        parsed = None
    return Call(
        method=request.method,
        path=request.url.path,
        query=dict(request.query_params),
        headers=dict(request.headers),
        body=cast("JsonObject", parsed) if isinstance(parsed, dict) else None,
        raw=raw,
    )


async def _client_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _log_call(call: Call, status: int) -> None:
    body = call.body or {}
    sizes = [len(cast("list[object]", body.get(key) or [])) for key in ("messages", "tools")]
    _log.info(
        "%s %s model=%s messages=%d tools=%d -> %d",
        call.method,
        call.path,
        body.get("model", "-"),
        *sizes,
        status,
    )
