"""The OpenAI protocols, chat completions and responses, as requests of the Messages API.

LiteLLM translates, in this process: it is imported with the first such request, which takes seconds and 180 MB. The
transport answers the translated request. So tokens, budgets, metrics and logs are those of `/v1/messages`, and an error
of the API keeps its status.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache, partial
from importlib.util import find_spec
from typing import Any, TypeAlias, cast
from urllib.parse import quote

import httpx2
from pydantic_core import from_json, to_json
from typing_extensions import override

from cc_messages.internals import MethodNotAllowedError, run_on_body
from cc_types import APIError, JsonValue

from .litellm_translation import StreamError, Translation, load
from .openai_body import parse_body

PATHS = frozenset({"/v1/chat/completions", "/v1/responses"})
"""Paths of the OpenAI protocols."""

_MODELS = "/v1/models"

PING = b": ping\n\n"
"""A comment of a stream of events, which clients skip."""

Handle: TypeAlias = Callable[[httpx2.Request], Awaitable[httpx2.Response]]
"""Answers a request."""

# Messages' statuses that OpenAI's API does not have.
_STATUSES = {402: 429, 529: 503}

# The texts of deltas, by type.
_JOINED = {"input_json_delta": "partial_json", "text_delta": "text", "thinking_delta": "thinking"}

_EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_PASSED_BACK = ("retry-after", "x-should-retry")

logger = logging.getLogger(__name__)


def speaks(method: str, path: str, headers: Mapping[str, str]) -> bool:
    """Return true if a request is in the OpenAI form: by its path, or for models by its headers."""
    if path in PATHS:
        return True
    is_of_models = method == "GET" and (path == _MODELS or path.startswith(f"{_MODELS}/"))
    return is_of_models and "authorization" in headers and "anthropic-version" not in headers and is_installed()


@cache
def is_installed() -> bool:
    """Return true if the extra `openai` is installed."""
    return find_spec("litellm") is not None


def check(method: str, path: str) -> None:
    """Raise `APIError` if a request in the OpenAI form cannot be answered."""
    if not is_installed():
        raise APIError(status=404, message=f"{path} needs LiteLLM: pip install 'cc-server[openai]'")
    if path in PATHS and method != "POST":
        raise MethodNotAllowedError(method, path, "POST")


def messages_path(path: str) -> tuple[bytes, bytes]:
    """Return path and query of the request to the transport for a request in the OpenAI form."""
    return (b"/v1/messages", b"") if path in PATHS else (quote(path).encode(), b"?limit=1000")


def handler(path: str, handle: Handle) -> Handle:
    """Return a function that answers requests in the OpenAI form with `handle`, which answers the Messages API's."""

    async def answer(request: httpx2.Request) -> httpx2.Response:
        if path not in PATHS:
            response = await handle(request)
            await response.aread()
            return models_response(response)
        is_chat = path == "/v1/chat/completions"
        if not load.cache_info().currsize:
            await asyncio.to_thread(load)
        translation = await run_on_body(partial(_translate, is_chat=is_chat), request.content)
        kept = {name: value for name, value in request.headers.items() if name not in ("content-length", "host")}
        headers = kept | ({"anthropic-beta": translation.beta} if translation.beta else {})
        content = to_json(translation.request)
        response = await handle(httpx2.Request("POST", request.url, headers=headers, content=content))
        if not response.is_error and translation.request.get("stream"):
            stream = _Stream(response, translation, is_chat=is_chat)
            return httpx2.Response(200, headers=_EVENT_STREAM, stream=stream)
        try:
            content = await response.aread()
        finally:
            await response.aclose()
        if response.is_error:
            return error_response(response)
        content = _json(await run_on_body(translation.response, content))
        return httpx2.Response(200, content=content, headers={"content-type": "application/json"})

    return answer


def _error_body(error: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    shown: dict[str, JsonValue] = {"message": error.get("message"), "type": error.get("type")}
    return {"error": {**shown, "param": None, "code": error.get("type")}}


def error_event(body: Mapping[str, JsonValue]) -> bytes:
    """Return the end of a stream that breaks off, for an error body of the Messages API."""
    return b"data: " + to_json(_error_body(cast("Mapping[str, JsonValue]", body["error"]))) + b"\n\n"


def error_response(response: httpx2.Response) -> httpx2.Response:
    """Return an error response of the Messages API, which was read, in the OpenAI form."""
    try:
        error = cast("Mapping[str, JsonValue]", from_json(response.content)["error"])
    except (ValueError, LookupError, TypeError):
        error = {"message": f"The API answered with {response.status_code}", "type": "api_error"}
    headers = {name: response.headers[name] for name in _PASSED_BACK if name in response.headers}
    if request_id := response.headers.get("request-id"):
        headers["x-request-id"] = request_id
    status = _STATUSES.get(response.status_code, response.status_code)
    return httpx2.Response(status, headers=headers, json=_error_body(error))


def models_response(response: httpx2.Response) -> httpx2.Response:
    """Return a list of models, or a model, in the OpenAI form."""
    if response.is_error:
        return error_response(response)
    found = cast("dict[str, Any]", response.json())
    if "data" in found:
        return httpx2.Response(200, json={"object": "list", "data": [_model(model) for model in found["data"]]})
    return httpx2.Response(200, json=_model(found))


def _model(model: Mapping[str, Any]) -> dict[str, JsonValue]:
    # Claude Code does not tell when a model was created, and clients expect a number.
    return {"id": model["id"], "object": "model", "created": 0, "owned_by": "anthropic"}


class _Stream(httpx2.AsyncByteStream):
    """A stream in the OpenAI form."""

    def __init__(self, response: httpx2.Response, translation: Translation, *, is_chat: bool) -> None:
        self._response, self._translation, self._is_chat = response, translation, is_chat

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for event in self._translation.events(_events(self._response)):
                name = b"" if self._is_chat else f"event: {event.type.value}\n".encode()
                yield name + b"data: " + _json(event) + b"\n\n"
            if self._is_chat:
                yield b"data: [DONE]\n\n"
        except httpx2.TransportError:
            raise
        except StreamError as error:
            yield error_event({"error": {**error.error}})
        except Exception:
            logger.exception("A stream could not be translated")
            yield error_event({"error": {"message": "The stream could not be translated", "type": "api_error"}})

    @override
    async def aclose(self) -> None:
        await self._response.aclose()


async def _events(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    """Yield the events of a stream of the Messages API."""
    rest = b""
    async for chunk in response.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for event in joined([from_json(line[5:]) for line in lines if line.startswith(b"data:")]):
            yield event


def joined(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the deltas of a block among events that came together, but for the first: LiteLLM takes long for each."""
    result: list[dict[str, Any]] = []
    for event in events:
        if len(result) > 1 and (kind := _shared_kind(event, *result[-2:])) in _JOINED:
            result[-1]["delta"][_JOINED[kind]] += event["delta"][_JOINED[kind]]
        else:
            result.append(event)
    return result


def _shared_kind(*events: dict[str, Any]) -> str:
    """Return the type of the deltas if all events are deltas of the same type in the same block, else ""."""
    kinds = {(event.get("index"), event.get("delta", {}).get("type")) for event in events}
    return next(iter(kinds))[1] or "" if len(kinds) == 1 else ""


def _json(value: Any) -> bytes:
    return value.model_dump_json(exclude_none=True).encode()


def _translate(content: bytes, *, is_chat: bool) -> Translation:
    return Translation(parse_body(content, is_chat=is_chat), is_chat=is_chat)
