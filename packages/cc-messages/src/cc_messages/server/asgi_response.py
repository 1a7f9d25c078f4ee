"""An answer of the transport on its way to an HTTP client: head, body, pings, and the error if it breaks off.

Knows ASGI and the form of the API's events; access was checked before.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping

import httpx2
from starlette.types import Message, Send

from cc_types import APIError, CLINotFoundError

from ..api.failure import error_body
from ..api.message import sse
from ..api.response import error_response
from ..transport import ClaudeCodeTransport
from .request_body import ClientGone

__all__ = ["relay", "send_response"]

logger = logging.getLogger(__name__)

# A client that reads nothing of its answer for so long counts as gone, even if its connection is open.
_SEND_SECONDS = 120.0

_EVENT_STREAM = "text/event-stream"
_PING = sse({"type": "ping"})


async def relay(transport: ClaudeCodeTransport, request: httpx2.Request, send: Send, ping_seconds: float) -> None:
    """Answer `request` to a client. Cancelling this ends the work on it."""
    try:
        response = await transport.handle_async_request(request)
    except httpx2.TransportError as error:
        response = error_response(_server_error(error))
        if isinstance(error.__cause__, CLINotFoundError):  # which a retry cannot fix
            response.headers["x-should-retry"] = "false"
    try:
        await send_response(response, send, ping_seconds)
    finally:
        await response.aclose()


async def send_response(response: httpx2.Response, send: Send, ping_seconds: float) -> None:
    """Send a response piece by piece."""
    await _send(
        send, {"type": "http.response.start", "status": response.status_code, "headers": _raw(response.headers)}
    )
    async for chunk in _chunks(response, ping_seconds):
        await _send(send, {"type": "http.response.body", "body": chunk, "more_body": True})
    await _send(send, {"type": "http.response.body"})


async def _chunks(response: httpx2.Response, ping_seconds: float) -> AsyncIterator[bytes]:
    """Yield the body; an event stream gets pings during silence, and an error event if it breaks off."""
    body = response.aiter_bytes()
    if not response.headers.get("content-type", "").startswith(_EVENT_STREAM):
        async for chunk in body:
            yield chunk
        return
    try:
        async for chunk in _with_pings(body, ping_seconds):
            yield chunk
    except httpx2.TransportError as error:
        yield sse(error_body(_server_error(error)))


async def _with_pings(chunks: AsyncIterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    """Yield chunks, each of which ends with an event, and a ping after every `seconds` of silence."""
    coming = asyncio.ensure_future(_next(chunks))
    try:
        while True:
            done, _ = await asyncio.wait({coming}, timeout=seconds)
            if not done:
                yield _PING
            elif chunk := coming.result():
                yield chunk
                coming = asyncio.ensure_future(_next(chunks))
            else:
                return
    finally:
        coming.cancel()


async def _next(chunks: AsyncIterator[bytes]) -> bytes:
    return await anext(chunks, b"")


async def _send(send: Send, message: Message) -> None:
    try:
        async with asyncio.timeout(_SEND_SECONDS):
            await send(message)
    except TimeoutError as error:
        raise ClientGone from error


def _server_error(error: httpx2.TransportError) -> APIError:
    """Return the error between this server and the API."""
    # Without the text, which can be the API's and quote the request.
    logger.warning("A request failed: %s", type(error.__cause__ or error).__name__)
    status = 500 if isinstance(error.__cause__, CLINotFoundError) else 502
    return APIError(status=status, message=str(error), error_type="api_error")


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
