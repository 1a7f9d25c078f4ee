"""Responses that Starlette lacks: with delays between chunks, and with an early end of the connection."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from .errors import error_body, error_type_for
from .routes import Dialect
from .types import JsonObject

_NONE: Mapping[str, str] = {}


class SteppedResponse(Response):
    """A response that sends chunks with pauses, and does not finish if `cut` is set."""

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
        # Starlette has set the length for empty content; without a length the body is sent in chunks.
        del self.headers["content-length"]
        self._chunks = chunks
        self._pauses = pauses
        self._cut = cut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response. If it does not finish, the server closes the connection after the last chunk."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for pause, chunk in zip(self._pauses, self._chunks, strict=False):
            # Even without a pause: a long stream must yield to the other connections.
            await asyncio.sleep(pause)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if not self._cut:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass(frozen=True, slots=True)
class Responses:
    """Factory for responses to a request, in the dialect of an API and with a request id."""

    dialect: Dialect
    request_id: str

    def whole(self, content: JsonObject, headers: Mapping[str, str] = _NONE) -> Response:
        """Return a JSON response."""
        return JSONResponse(content, headers=self._headers(headers))

    def truncated(self, content: JsonObject, headers: Mapping[str, str]) -> Response:
        """Return a JSON response that ends after half of the body."""
        whole = bytes(JSONResponse(content).body)
        half = whole[: len(whole) // 2]
        return SteppedResponse([half], headers=self._headers({"content-type": "application/json", **headers}), cut=True)

    def stream(
        self, events: Sequence[JsonObject], headers: Mapping[str, str], *, pause: float, cut: bool = False
    ) -> Response:
        """Return an event stream with `pause` seconds before each event; with `cut` it ends within the HTTP body."""
        chunks = [self.dialect.encode_event(event) for event in events]
        all_headers = {"content-type": self.dialect.event_stream, "cache-control": "no-cache", **headers}
        return SteppedResponse(chunks, headers=self._headers(all_headers), pauses=repeat(pause), cut=cut)

    def error(
        self, status: int, message: str | None, error_type: str | None = None, headers: Mapping[str, str] = _NONE
    ) -> Response:
        """Return an error response; the default type belongs to the status."""
        error = self.error_body(error_type or error_type_for(status), message)
        body, dialect_headers = self.dialect.error_parts(error)
        return JSONResponse(body, status, self._headers({**dialect_headers, **headers}))

    def error_body(self, error_type: str, message: str | None) -> JsonObject:
        """Return the Messages API's error object, which is also a stream's `error` event."""
        return error_body(error_type, message, self.request_id)

    def _headers(self, others: Mapping[str, str]) -> dict[str, str]:
        return {self.dialect.id_header: self.request_id, **others}
