"""Responses that Starlette lacks: one with delays between chunks, and one that ends the connection early.

This module knows ASGI, and not the meaning of the bytes.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from .dialects import Dialect
from .errors import error_body
from .types import JsonObject

_NONE: Mapping[str, str] = {}


class SteppedResponse(Response):
    """A response that sends chunks with pauses, and with `cut` does not finish."""

    def __init__(
        self,
        chunks: Sequence[bytes],
        *,
        headers: Mapping[str, str],
        status: int = 200,
        pauses: Iterable[float] = repeat(0),
        cut: bool = False,
    ) -> None:
        super().__init__(status_code=status, headers=headers)
        # Starlette has set the length of the empty content; without a length the body is sent in chunks.
        del self.headers["content-length"]
        self._chunks = chunks
        self._pauses = pauses
        self._cut = cut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response. If it does not finish, the server closes the connection after the last chunk."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for pause, chunk in zip(self._pauses, self._chunks, strict=False):
            # Also without a pause: a long stream must yield to the other connections.
            await asyncio.sleep(pause)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if not self._cut:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass(frozen=True, slots=True)
class Responses:
    """Factory of the responses to one request, in the dialect of its API and with its id."""

    dialect: Dialect
    request_id: str

    def whole(self, content: JsonObject, headers: Mapping[str, str] = _NONE) -> Response:
        """Return a JSON response."""
        return JSONResponse(content, headers=self._headers(headers))

    def truncated(self, content: JsonObject, headers: Mapping[str, str]) -> Response:
        """Return a JSON response that ends after half of its body."""
        whole = bytes(JSONResponse(content).body)
        half = whole[: len(whole) // 2]
        return SteppedResponse([half], headers=self._headers({"content-type": "application/json", **headers}), cut=True)

    def stream(
        self, events: Sequence[JsonObject], headers: Mapping[str, str], *, pause: float, cut: bool = False
    ) -> Response:
        """Return a stream of events with `pause` seconds before each; with `cut` it ends within the HTTP body."""
        chunks = [self.dialect.encode_event(event) for event in events]
        all_headers = {"content-type": self.dialect.event_stream, "cache-control": "no-cache", **headers}
        return SteppedResponse(chunks, headers=self._headers(all_headers), pauses=repeat(pause), cut=cut)

    def error(self, status: int, error_type: str, message: str | None, headers: Mapping[str, str] = _NONE) -> Response:
        """Return an error response with an HTTP status."""
        body, own_headers = self.dialect.error_parts(self.error_body(error_type, message))
        return JSONResponse(body, status, self._headers({**own_headers, **headers}))

    def error_body(self, error_type: str, message: str | None) -> JsonObject:
        """Return the error object of the Messages API, which is also the `error` event of a stream."""
        return error_body(error_type, message, self.request_id)

    def _headers(self, others: Mapping[str, str]) -> dict[str, str]:
        return {self.dialect.id_header: self.request_id, **others}
