"""A response on the way to an HTTP client: head, body, pings, and the error if it breaks off.

Knows ASGI and the form of the API's events; access was checked before.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

import httpx2
from starlette.requests import ClientDisconnect
from starlette.types import Message, Send

from cc_types import APIError, CLINotFoundError

from ..api.failure import error_body, error_response
from ..api.message import sse
from ..transport import ClaudeCodeTransport

__all__ = ["relay", "send_response"]

logger = logging.getLogger(__name__)

# A client that reads nothing for so long counts as gone, even with an open connection.
_SEND_SECONDS = 120.0

_PING = sse({"type": "ping"})


async def relay(transport: ClaudeCodeTransport, request: httpx2.Request, send: Send, ping_seconds: float) -> None:
    """Answer `request` to a client. Cancelling this ends the work on it."""
    try:
        response = await transport.handle_async_request(request)
    except httpx2.TransportError as error:
        response = error_response(_server_error(error))
        if isinstance(error.__cause__, CLINotFoundError):  # a retry cannot fix it
            response.headers["x-should-retry"] = "false"
    try:
        await send_response(response, send, ping_seconds)
    finally:
        await response.aclose()


async def send_response(response: httpx2.Response, send: Send, ping_seconds: float) -> None:
    """Send a response piece by piece."""
    headers = [(name.lower(), value) for name, value in response.headers.raw]
    await _send(send, {"type": "http.response.start", "status": response.status_code, "headers": headers})
    async for chunk in _chunks(response, ping_seconds):
        await _send(send, {"type": "http.response.body", "body": chunk, "more_body": True})
    await _send(send, {"type": "http.response.body"})


async def _chunks(response: httpx2.Response, ping_seconds: float) -> AsyncIterator[bytes]:
    """Yield the body; an event stream gets pings during silence, and an error event if it breaks off."""
    body = response.aiter_bytes()
    is_event_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    try:
        async for chunk in _with_pings(body, ping_seconds) if is_event_stream else body:
            yield chunk
    except httpx2.TransportError as error:
        if not is_event_stream:
            raise
        yield sse(error_body(_server_error(error)))


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


async def _send(send: Send, message: Message) -> None:
    try:
        async with asyncio.timeout(_SEND_SECONDS):
            await send(message)
    except TimeoutError as error:
        raise ClientDisconnect from error


def _server_error(error: httpx2.TransportError) -> APIError:
    """Return the error between this server and the API."""
    # Without the text, which can be the API's and quote the request.
    logger.warning("A request failed: %s", type(error.__cause__ or error).__name__)
    status = 500 if isinstance(error.__cause__, CLINotFoundError) else 502
    return APIError(status=status, message=str(error), error_type="api_error")
