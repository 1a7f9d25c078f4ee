"""The Messages API as an ASGI application, which knows no sockets, threads or CLI environments.

It records a request, and chooses the response: a fault, an error, a recorded answer, or the responder reply.
"""

import asyncio
import inspect
import json
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .api.checks import problem_with
from .api.errors import COMPLETE_ERRORS, CassetteError, ThinkingError, error_text, error_type_for
from .api.events import stream_events
from .api.models import model_info, model_page
from .api.prompt_cache import PromptCache, input_tokens
from .api.reply import make_message, new_id
from .api.responses import Responses
from .api.routes import MESSAGES, MODELS, Route, route_of
from .api.thinking import ThinkingSigner
from .api.types import Call, JsonObject, Respond
from .script import place_of

if TYPE_CHECKING:
    from .recording.tape import Tape

_log = logging.getLogger("cc_loopback")
_LOWEST_ERROR, _HIGHEST_ERROR = 400, 599
# For a failed script or cassette: no client retries it, and the API itself never sends it.
_SCRIPT_FAILED = 424


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for a request. Without an `error_type`, it is the type that belongs to the status."""

    status: int | None = None
    after_events: int | None = None
    error_type: str | None = None
    message: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0.0

    def __post_init__(self) -> None:
        if self.status is not None and not _LOWEST_ERROR <= self.status <= _HIGHEST_ERROR:
            raise ValueError(f"status must be an error status from 400 to 599, not {self.status}")
        if self.after_events is not None and self.after_events < 0:
            raise ValueError(f"after_events must not be negative, but is {self.after_events}")
        if self.delay < 0:
            raise ValueError(f"delay must not be negative, but is {self.delay}")


_NO_FAULT = Fault()


class MessagesApp:
    """ASGI application that serves the Messages API."""

    def __init__(self, respond: Respond, event_delay: float, signer: ThinkingSigner | None = None) -> None:
        self.respond = respond
        self.tape: Tape | None = None
        """The cassette in use. It answers in place of the responder."""
        self.cache = PromptCache()
        """Prompts that were cached for later requests."""
        self.faults: dict[str, deque[Fault]] = {}
        """Queue of faults for each path. The application only takes from the queues."""
        # The application only appends to the lists.
        self.calls: list[Call] = []
        self.requests: list[JsonObject] = []
        self.errors: list[BaseException] = []
        self._event_delay = event_delay
        self._signer = signer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and cancel it as soon as the client disconnects."""
        try:
            call = await _read_call(Request(scope, receive))
        except ClientDisconnect:
            return
        work = asyncio.ensure_future(self._serve(call, scope, receive, send))
        disconnect = asyncio.ensure_future(_wait_for_disconnect(receive))
        disconnect.add_done_callback(lambda _: work.cancel())
        try:
            await work
        except asyncio.CancelledError:
            if not disconnect.done():
                raise
        finally:
            disconnect.cancel()

    async def _serve(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        route = route_of(call.path)
        self.calls.append(call)
        if (call.method, route.path) == ("POST", MESSAGES) and call.body is not None:
            self.requests.append({**call.body, **route.fields})
        response = await self._response(call, route)
        _log_call(call, route, response.status_code)
        try:
            await response(scope, receive, send)
        except CassetteError as error:  # The cassette could not be written after a stream.
            self.errors.append(error)
            raise

    async def _response(self, call: Call, route: Route) -> Response:
        responses = Responses(route.dialect, new_id("req"))
        faults = self.faults.get(route.path)
        fault = faults.popleft() if faults else _NO_FAULT
        await asyncio.sleep(fault.delay)
        if fault.status is not None and fault.after_events is None:
            return responses.error(fault.status, fault.message, fault.error_type, fault.headers)
        try:
            recorded = await self.tape.respond(call) if self.tape else None
            return recorded or await self._scripted(call, route, fault, responses)
        except ThinkingError as error:
            return responses.error(400, str(error))
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # A test's `pytest.fail()` must be reported, too, and the server must continue.
            self.errors.append(error)
            return responses.error(_SCRIPT_FAILED, self._problem(error))

    def _problem(self, error: BaseException) -> str:
        """Return the text for a failed cassette, script or responder. A responder error gets its place as a note."""
        if isinstance(error, COMPLETE_ERRORS):
            return error_text(error)
        place = place_of(error, self.respond)
        if place not in getattr(error, "__notes__", ()):
            error.add_note(place)
        return f"{error_text(error)}. The test's script failed, not the API."

    async def _scripted(self, call: Call, route: Route, fault: Fault, responses: Responses) -> Response:
        match call.method, route.path:
            case "POST", "/v1/messages":
                return await self._messages(call, route, fault, responses)
            case "POST", "/v1/messages/count_tokens":
                return self._count_tokens(call, route, responses)
            case "GET", path if path == MODELS or path.startswith(f"{MODELS}/"):
                return _models(call, responses)
            case "GET", "/inference-profiles":
                # With an empty list, the CLI uses Bedrock's usual model names.
                return responses.whole({"inferenceProfileSummaries": []})
            case _:
                return responses.error(404, f"{call.method} {call.path} is not served here")

    async def _messages(self, call: Call, route: Route, fault: Fault, responses: Responses) -> Response:
        if problem := problem_with(call.body, route.fields):
            return responses.error(400, problem)
        # Parsed again: the responder may modify its argument, but not the recorded body.
        body: JsonObject = {**json.loads(call.raw), **route.fields}
        prompt, report = self._signer.check(body) if self._signer else (body, [])
        counts = self.cache.usage(prompt)
        reply = self.respond(prompt)
        message = make_message(await reply if inspect.isawaitable(reply) else reply, prompt, counts)
        if self._signer:
            self._signer.sign(message, {**json.loads(call.raw), **route.fields})
        if report:
            message["input_transformations"] = report
        if body.get("stream"):
            return self._stream(message, fault, responses)
        return _whole_response(message, fault, responses)

    def _stream(self, message: JsonObject, fault: Fault, responses: Responses) -> Response:
        events = list(stream_events(message))[: fault.after_events]
        ends_early = fault.after_events is not None
        if ends_early and fault.status is not None:
            events.append(responses.error_body(fault.error_type or error_type_for(fault.status), fault.message))
        cut = ends_early and fault.status is None
        return responses.stream(events, fault.headers, pause=self._event_delay, cut=cut)

    def _count_tokens(self, call: Call, route: Route, responses: Responses) -> Response:
        if problem := problem_with(call.body, route.fields, counting=True):
            return responses.error(400, problem)
        body = call.body or {}
        prompt, _ = self._signer.check(body) if self._signer else (body, [])
        return responses.whole({"input_tokens": input_tokens(prompt)})


def _whole_response(message: JsonObject, fault: Fault, responses: Responses) -> Response:
    if fault.after_events is None:
        return responses.whole(message, fault.headers)
    if fault.status is None:
        return responses.truncated(message, fault.headers)
    # Without streaming, nothing has been sent before the failure, so the status can still report it.
    return responses.error(fault.status, fault.message, fault.error_type, fault.headers)


def _models(call: Call, responses: Responses) -> Response:
    if name := call.path.removeprefix(MODELS).removeprefix("/"):
        info = model_info(name)
        return responses.whole(info) if info else responses.error(404, f"model: {name}")
    try:
        return responses.whole(model_page(call.query))
    except ValueError as error:
        return responses.error(400, f"query: {error}")


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


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _length(value: object) -> int:
    return len(cast("list[object]", value)) if isinstance(value, list) else 0


def _log_call(call: Call, route: Route, status: int) -> None:
    body = {**(call.body or {}), **route.fields}
    model, messages, tools = body.get("model", "-"), _length(body.get("messages")), _length(body.get("tools"))
    _log.info("%s %s model=%s messages=%d tools=%d -> %d", call.method, call.path, model, messages, tools, status)
