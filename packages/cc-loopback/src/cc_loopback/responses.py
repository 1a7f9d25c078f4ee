"""Responses that Starlette does not have: one that is sent in steps, and one that breaks off.

Knows ASGI; what the bytes mean is decided elsewhere.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from .dialects import Dialect
from .errors import error_body
from .types import JsonObject

_NONE: Mapping[str, str] = {}


class SteppedResponse(Response):
    """Sends its chunks one by one, and, if told so, never finishes."""

    def __init__(
        self,
        chunks: Sequence[bytes],
        *,
        headers: Mapping[str, str],
        status: int = 200,
        pause: float = 0,
        cut: bool = False,
    ) -> None:
        super().__init__(status_code=status, headers=headers)
        # Starlette has counted the empty content it was given; without a length the body goes out in chunks.
        del self.headers["content-length"]
        self._chunks = chunks
        self._pause = pause
        self._cut = cut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; returning before its end makes the server drop the connection, after what was written."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for chunk in self._chunks:
            # Also without a pause: a long stream must let the other connections have their turn.
            await asyncio.sleep(self._pause)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if not self._cut:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass(frozen=True, slots=True)
class Responses:
    """The responses to one request: in the dialect of its API, with its id."""

    dialect: Dialect
    request_id: str

    def whole(self, content: JsonObject, headers: Mapping[str, str] = _NONE) -> Response:
        """Return a JSON response."""
        return JSONResponse(content, headers=self._headers(headers))

    def half(self, content: JsonObject, headers: Mapping[str, str]) -> Response:
        """Return a JSON response that breaks off half-way."""
        whole = bytes(JSONResponse(content).body)
        half = whole[: len(whole) // 2]
        return SteppedResponse([half], headers=self._headers({"content-type": "application/json", **headers}), cut=True)

    def stream(
        self, events: Sequence[JsonObject], headers: Mapping[str, str], *, pause: float, cut: bool = False
    ) -> Response:
        """Return a stream of events, `pause` seconds before each; with `cut` it ends in the middle of the HTTP body."""
        chunks = [self.dialect.encode_event(event) for event in events]
        all_headers = {"content-type": self.dialect.event_stream, "cache-control": "no-cache", **headers}
        return SteppedResponse(chunks, headers=self._headers(all_headers), pause=pause, cut=cut)

    def error(self, status: int, error_type: str, message: str | None, headers: Mapping[str, str] = _NONE) -> Response:
        """Return an error body under an HTTP status."""
        body, own_headers = self.dialect.error_parts(self.error_body(error_type, message))
        return JSONResponse(body, status, self._headers({**own_headers, **headers}))

    def error_body(self, error_type: str, message: str | None) -> JsonObject:
        """Return the error as the Messages API says it, which is also the event that ends a stream."""
        return error_body(error_type, message, self.request_id)

    def _headers(self, others: Mapping[str, str]) -> dict[str, str]:
        return {self.dialect.id_header: self.request_id, **others}
