"""Reading of a request's body within limits of size and time. Knows ASGI, not the content."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.types import Receive, Scope

from cc_types import APIError

__all__ = ["ClientGone", "RequestBody"]

# 32 MB over a slow line take some ten seconds; a slower client occupies a place for nothing.
_READ_SECONDS = 60.0

# A client that is refused while it sends often reads the answer only after it has sent all.
_DRAIN_SECONDS = 5.0


class ClientGone(Exception):
    """The client has closed the connection, or has stopped reading or sending."""


class RequestBody:
    """The body of one request, which is read once."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._headers: list[tuple[bytes, bytes]] = [*scope["headers"]]
        self._receive = receive
        self._has_more = True

    @property
    def is_ambiguous(self) -> bool:
        """True if two headers set its end, so that a proxy and this server may disagree."""
        names = {name for name, _ in self._headers}
        return {b"content-length", b"transfer-encoding"} <= names

    async def read(self, limit: int) -> bytes:
        """Return the whole body."""
        for name, value in self._headers:
            if name == b"content-encoding" and value.lower() != b"identity":
                raise APIError(status=415, message="Compressed request bodies are not accepted")
            if name == b"content-length" and value.isdigit() and int(value) > limit:
                raise _too_large(limit)
        chunks: list[bytes] = []
        length = 0
        try:
            async with asyncio.timeout(_READ_SECONDS):
                async for chunk in self._chunks():
                    chunks.append(chunk)
                    length += len(chunk)
                    if length > limit:
                        raise _too_large(limit)
        except TimeoutError as error:
            raise APIError(status=408, message=f"The request did not come within {_READ_SECONDS:g} s") from error
        return b"".join(chunks)

    async def drain(self, limit: int) -> None:
        """Read the rest from a refused client, up to `limit` bytes, so that it sees its answer."""
        length = 0
        with suppress(TimeoutError, ClientGone):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for chunk in self._chunks():
                    length += len(chunk)
                    if length > limit:
                        return

    async def _chunks(self) -> AsyncIterator[bytes]:
        while self._has_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            self._has_more = message.get("more_body", False)
            yield message.get("body", b"")


def _too_large(limit: int) -> APIError:
    return APIError(status=413, message=f"Request exceeds the maximum allowed number of bytes, which is {limit}")
