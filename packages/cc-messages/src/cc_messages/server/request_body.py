"""Reading of a request's body within limits of size, time, and the number of JSON values.

Millions of values would occupy a server for minutes. They are counted in the bytes, in at most some 10 ms a megabyte.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope

from cc_types import APIError

from ..api.request import run_on_body

__all__ = ["MAX_VALUES", "RequestBody", "check_values"]

MAX_VALUES = 250_000
"""The maximum number for a request body. A conversation with 10,000 blocks has some 70,000."""

# 32 MB over a slow line take some ten seconds; a slower client occupies a place for nothing.
_READ_SECONDS = 60.0

# A client that is refused while it sends often reads the answer only after it has sent everything.
_DRAIN_SECONDS = 5.0


class RequestBody:
    """A request's body, which is read once, up to `limit` bytes."""

    def __init__(self, scope: Scope, receive: Receive, limit: int) -> None:
        self._request, self._limit = Request(scope, receive), limit
        self._headers = self._request.headers

    @property
    def is_ambiguous(self) -> bool:
        """True if two headers define the end, so that a proxy and this server may disagree."""
        return {"content-length", "transfer-encoding"} <= {*self._headers}

    async def read(self) -> bytes:
        """Return the whole body, checked."""
        for name, value in self._headers.items():
            if name == "content-encoding" and value.lower() != "identity":
                raise APIError(status=415, message="Compressed request bodies are not accepted")
            if name == "content-length" and value.isdecimal() and int(value) > self._limit:
                raise self._too_large()
        try:
            async with asyncio.timeout(_READ_SECONDS):
                content = b"".join([chunk async for chunk in self._chunks()])
        except TimeoutError as error:
            raise APIError(status=408, message=f"The request did not come within {_READ_SECONDS:g} s") from error
        await run_on_body(check_values, content)
        return content

    async def drain(self) -> None:
        """Read the rest from a refused client, up to the limit, so that the client sees the answer."""
        with suppress(TimeoutError, ClientDisconnect, APIError, RuntimeError):  # the last: nothing is left
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self._chunks():
                    pass

    async def _chunks(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._request.stream():
            length += len(chunk)
            if length > self._limit:
                raise self._too_large()
            yield chunk

    def _too_large(self) -> APIError:
        message = f"Request exceeds the maximum allowed number of bytes, which is {self._limit}"
        return APIError(status=413, message=message)


def check_values(body: bytes, limit: int = MAX_VALUES) -> None:
    """Check that a body has at most `limit` JSON values. An empty array or object counts twice.

    If the body is not valid JSON, the check covers the part before the error.
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
