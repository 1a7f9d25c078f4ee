"""OpenAI's protocols, chat completions and responses, translated by LiteLLM into requests of the Messages API and back.

LiteLLM is imported with the first such request: that takes seconds and 180 MB. It runs in this process, makes no
request of its own, and sends each request of the Messages API to a function, which gives it to the transport. So
tokens, budgets, metrics and logs are those of `/v1/messages`, and an error that the API sends keeps its status.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias, cast
from urllib.parse import quote

import httpx2
from pydantic_core import from_json, to_json
from typing_extensions import override

from cc_messages.internals import MethodNotAllowedError, run_on_body
from cc_types import APIError, JsonValue

PATHS = frozenset({"/v1/chat/completions", "/v1/responses"})
"""Paths of OpenAI's protocols."""

_MODELS = "/v1/models"

PING = b": ping\n\n"
"""A comment of a stream of events, which clients skip."""

Handle: TypeAlias = Callable[[httpx2.Request], Awaitable[httpx2.Response]]
"""Answers a request."""

Ask: TypeAlias = Callable[[bytes, str], Awaitable[httpx2.Response]]
"""Sends the body of a request of the Messages API, with the value of `anthropic-beta`."""

# Fields that LiteLLM gets. It has hundreds more, with which a client could choose addresses and programs.
_TAKEN = {
    "/v1/chat/completions": frozenset((
        "function_call", "functions", "max_completion_tokens", "max_tokens", "messages", "parallel_tool_calls",
        "reasoning_effort", "response_format", "stop", "stream", "stream_options", "temperature", "tool_choice",
        "tools", "top_p", "user",
    )),
    "/v1/responses": frozenset((
        "include", "input", "instructions", "max_output_tokens", "parallel_tool_calls", "reasoning", "stream",
        "temperature", "text", "tool_choice", "tools", "top_p", "user",
    )),
}  # fmt: skip

# Fields without which the answer would be another one: what they name is on OpenAI's servers, or not in Messages.
_REFUSED = ("audio", "background", "conversation", "logprobs", "previous_response_id", "prompt")

_ADDRESSES = frozenset({"file_url", "image_url", "url"})

# LiteLLM's own requests: GitHub's lists of prices and headers, which are also in its package, and pictures. And the
# file `.env` of the working folder, which could bring a login.
_OFFLINE = {"LITELLM_OFFLINE_MODE": "true", "MAX_IMAGE_URL_DOWNLOAD_SIZE_MB": "0", "LITELLM_MODE": "PRODUCTION"}

# Messages' statuses that OpenAI's API does not have.
_STATUSES = {402: 429, 529: 503}

_EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_PASSED_BACK = ("retry-after", "x-should-retry")
_ERROR_EVENT = b"event: error\ndata: "

# The time limit is the transport's.
_SECONDS = 24 * 3600.0

logger = logging.getLogger(__name__)

_current: ContextVar["Exchange"] = ContextVar("cc_server_openai_exchange")


def speaks(method: str, path: str, headers: Mapping[str, str]) -> bool:
    """Return true if a request is in OpenAI's form: by its path, or for models by its headers."""
    if path in PATHS:
        return True
    is_of_models = method == "GET" and (path == _MODELS or path.startswith(f"{_MODELS}/"))
    return is_of_models and "authorization" in headers and "anthropic-version" not in headers and is_installed()


@cache
def is_installed() -> bool:
    """Return true if the extra `openai` is installed."""
    return find_spec("litellm") is not None


def check(method: str, path: str) -> None:
    """Raise `APIError` if a request in OpenAI's form cannot be answered."""
    if not is_installed():
        raise APIError(status=404, message=f"{path} needs LiteLLM: pip install 'cc-server[openai]'")
    if path in PATHS and method != "POST":
        raise MethodNotAllowedError(method, path, "POST")


def messages_path(path: str) -> tuple[bytes, bytes]:
    """Return path and query of the request to the transport for a request in OpenAI's form."""
    return (b"/v1/messages", b"") if path in PATHS else (quote(path).encode(), b"?limit=1000")


def handler(path: str, handle: Handle) -> Handle:
    """Return a function that answers requests in OpenAI's form with `handle`, which answers the Messages API's."""

    async def answer(request: httpx2.Request) -> httpx2.Response:
        if path not in PATHS:
            response = await handle(request)
            await response.aread()
            return models_response(response)

        async def ask(content: bytes, beta: str) -> httpx2.Response:
            kept = {name: value for name, value in request.headers.items() if name not in ("content-length", "host")}
            headers = kept | ({"anthropic-beta": beta} if beta else {})
            return await handle(httpx2.Request("POST", request.url, headers=headers, content=content))

        return await Exchange(path, ask).answer(request.content)

    return answer


def _error_body(error: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    shown: dict[str, JsonValue] = {"message": error.get("message"), "type": error.get("type")}
    return {"error": {**shown, "param": None, "code": error.get("type")}}


def error_event(body: Mapping[str, JsonValue]) -> bytes:
    """Return the end of a stream that breaks off, for an error body of the Messages API."""
    return b"data: " + to_json(_error_body(cast("Mapping[str, JsonValue]", body["error"]))) + b"\n\n"


def error_response(response: httpx2.Response) -> httpx2.Response:
    """Return an error response of the Messages API, which was read, in OpenAI's form."""
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
    """Return a list of models, or a model, in OpenAI's form."""
    if response.is_error:
        return error_response(response)
    found = cast("dict[str, Any]", response.json())
    if "data" in found:
        return httpx2.Response(200, json={"object": "list", "data": [_model(model) for model in found["data"]]})
    return httpx2.Response(200, json=_model(found))


def _model(model: Mapping[str, Any]) -> dict[str, JsonValue]:
    # Claude Code does not tell when a model was created, and clients expect a number.
    return {"id": model["id"], "object": "model", "created": 0, "owned_by": "anthropic"}


class Exchange:
    """A request in one of OpenAI's protocols, and the requests of the Messages API that it makes."""

    def __init__(self, path: str, ask: Ask) -> None:
        self._path, self._is_chat, self._ask = path, path == "/v1/chat/completions", ask
        self._refusal: httpx2.Response | None = None
        self._response: httpx2.Response | None = None
        self._broken: Exception | None = None
        self._error: dict[str, JsonValue] | None = None

    async def answer(self, content: bytes) -> httpx2.Response:
        """Return the response to a request with this body.

        Raises:
            APIError: The request is invalid, or asks for what the Messages API does not have.
        """
        body = await run_on_body(_checked, content)
        model = f"anthropic/{body['model']}"
        body = {name: value for name, value in body.items() if name in _TAKEN[self._path]}
        library = await asyncio.to_thread(_library)  # seconds, for the first request
        call = library.chat if self._is_chat else library.responses
        _current.set(self)
        try:
            result = await call(
                model=model, **body, client=library.client, api_base="http://claude/v1/messages", api_key="-",
                num_retries=0, max_retries=0, timeout=_SECONDS,
            )  # fmt: skip
        except BaseException as error:  # also a cancel, while LiteLLM reads the response
            await self.aclose()
            if not isinstance(error, Exception):
                raise
            return self._failed(error)
        if body.get("stream"):
            return httpx2.Response(200, headers=_EVENT_STREAM, stream=_Stream(self, result))
        return httpx2.Response(200, content=_json(result), headers={"content-type": "application/json"})

    def _failed(self, error: Exception) -> httpx2.Response:
        """Return the API's own error, or LiteLLM's about a request that was not sent."""
        if self._broken is not None:
            raise self._broken
        if self._refusal is not None:
            return error_response(self._refusal)
        status = getattr(error, "status_code", None)
        if not isinstance(status, int) or self._response is not None:
            raise error
        raise APIError(status=status, message=str(getattr(error, "message", error))) from error

    async def send(self, content: bytes, beta: str) -> httpx2.Response:
        """Send a request of the Messages API for LiteLLM."""
        try:
            response = await self._ask(content, beta)
        except Exception as error:
            self._broken = error
            raise
        if response.is_error:
            await response.aread()
            self._refusal = response
        self._response = response
        return response

    async def pieces(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        """Yield the lines that LiteLLM reads; it makes a chunk of any other line, too. Keep an error at the end."""
        try:
            async for chunk in response.aiter_bytes():
                if _ERROR_EVENT in chunk:
                    line = chunk[chunk.rindex(_ERROR_EVENT) :].removeprefix(_ERROR_EVENT)
                    self._error = from_json(line.partition(b"\n")[0])["error"]
                yield b"".join(line for line in chunk.splitlines(keepends=True) if line.startswith(b"data:"))
        except httpx2.TransportError as error:
            self._broken = error
            raise

    async def events(self, result: AsyncIterator[Any]) -> AsyncIterator[bytes]:
        """Yield the events of a stream, with the API's own error if it breaks off."""
        try:
            async for piece in result:
                name = b"" if self._is_chat else f"event: {piece.type}\n".encode()
                yield name + b"data: " + _json(piece) + b"\n\n"
        except Exception as error:
            if self._broken is not None:
                raise self._broken from error
            if self._error is None:
                logger.error("The translation of a stream failed", exc_info=error)
            yield error_event({"error": self._error or {"message": "The stream broke off", "type": "api_error"}})
            return
        if self._error is not None:  # LiteLLM takes it for an end
            yield error_event({"error": self._error})
        elif self._is_chat:
            yield b"data: [DONE]\n\n"

    async def aclose(self) -> None:
        """End the work on the request."""
        if self._response is not None:
            await self._response.aclose()


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, exchange: Exchange, result: AsyncIterator[Any]) -> None:
        self._exchange, self._result = exchange, result

    @override
    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._exchange.events(self._result)

    @override
    async def aclose(self) -> None:
        await self._exchange.aclose()


def _json(value: Any) -> bytes:
    return value.model_dump_json(exclude_none=True).encode()


def _checked(content: bytes) -> dict[str, Any]:
    """Return a body whose fields LiteLLM can translate."""
    try:
        parsed = from_json(content)
    except ValueError as error:
        raise APIError(status=400, message=f"The body is not valid JSON: {error}") from error
    body = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    if not isinstance(body.get("model"), str):
        raise APIError(status=400, message="model: a text is required")
    if not isinstance(body.get("messages"), list) and not isinstance(body.get("input"), list | str):
        raise APIError(status=400, message="messages or input: a list is required")
    for name in _REFUSED:
        if body.get(name):
            message = f"{name}: not supported, since it is not in the Messages API. Send the whole conversation"
            raise APIError(status=400, message=message)
    if body.get("n") not in (None, 1):
        raise APIError(status=400, message="n: the Messages API gives one answer")
    tools: Any = body.get("tools") or []
    if not isinstance(tools, list) or not all(map(_is_function, cast("list[object]", tools))):
        raise APIError(status=400, message="tools: only functions are supported")
    for address in _addresses([body.get("messages"), body.get("input")]):
        if not address.startswith(("data:", "https://")):
            message = f"An address begins with https:// or data:, not {address[:20]!r}"
            raise APIError(status=400, message=message)
    return body


def _is_function(tool: object) -> bool:
    return isinstance(tool, dict) and cast("dict[str, object]", tool).get("type") == "function"


def _addresses(value: object) -> Iterator[str]:
    """Yield the addresses of pictures and files in a conversation."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _addresses(item)
    elif isinstance(value, dict):
        for name, item in cast("dict[str, object]", value).items():
            if name in _ADDRESSES and isinstance(item, str):
                yield item
            else:
                yield from _addresses(item)


class _Library:
    """LiteLLM, whose requests go to the current exchange."""

    def __init__(self) -> None:
        os.environ.update(_OFFLINE)
        litellm: Any
        litellm, handler = map(import_module, ("litellm", "litellm.llms.custom_httpx.http_handler"))
        import httpx

        class Bridge(httpx.AsyncBaseTransport):
            @override
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                exchange = _current.get()
                response = await exchange.send(await request.aread(), request.headers.get("anthropic-beta", ""))
                if response.is_error or not response.headers["content-type"].startswith("text/event-stream"):
                    return httpx.Response(response.status_code, content=await response.aread())
                headers = {"content-type": "text/event-stream"}
                return httpx.Response(200, headers=headers, stream=Pieces(exchange.pieces(response)))

        class Pieces(httpx.AsyncByteStream):
            def __init__(self, pieces: AsyncIterator[bytes]) -> None:
                self._pieces = pieces

            @override
            def __aiter__(self) -> AsyncIterator[bytes]:
                return self._pieces

        litellm.suppress_debug_info = True
        litellm.drop_params = True
        litellm.telemetry = False
        self.client: Any = handler.AsyncHTTPHandler(transport=Bridge())
        self.chat: Any = litellm.acompletion
        self.responses: Any = litellm.aresponses


_library = cache(_Library)
