"""Responses in the dialect of an API, with delays between chunks or with an early end of the connection."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from starlette.responses import JSONResponse, Response, StreamingResponse

from .errors import error_body, error_type_for
from .routes import Dialect
from .types import JsonObject

_NONE: Mapping[str, str] = {}


class ResponseCut(Exception):
    """A response does not finish. The server then closes the connection."""


async def paced(
    chunks: Sequence[bytes], pauses: Iterable[float] = repeat(0), *, cut: bool = False
) -> AsyncIterator[bytes]:
    """Yield chunks with pauses before them.

    Raises:
        ResponseCut: All chunks were sent, and `cut` is set.
    """
    for pause, chunk in zip(pauses, chunks, strict=False):
        # Even without a pause: a long stream must yield to the other connections.
        await asyncio.sleep(pause)
        yield chunk
    if cut:
        raise ResponseCut


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
        payload = bytes(JSONResponse(content).body)
        half = payload[: len(payload) // 2]
        all_headers = self._headers({"content-type": "application/json", **headers})
        return StreamingResponse(paced([half], cut=True), headers=all_headers)

    def stream(
        self, events: Sequence[JsonObject], headers: Mapping[str, str], *, pause: float, cut: bool = False
    ) -> Response:
        """Return an event stream with `pause` seconds before each event; with `cut` it ends within the HTTP body."""
        chunks = [self.dialect.encode_event(event) for event in events]
        all_headers = {"content-type": self.dialect.event_stream, "cache-control": "no-cache", **headers}
        return StreamingResponse(paced(chunks, repeat(pause), cut=cut), headers=self._headers(all_headers))

    def error(
        self, status: int, message: str | None, error_type: str | None = None, headers: Mapping[str, str] = _NONE
    ) -> Response:
        """Return an error response; the default type belongs to the status."""
        error = self.error_body(error_type or error_type_for(status), message)
        body, dialect_headers = self.dialect.error_parts(error)
        return JSONResponse(body, status, self._headers({**dialect_headers, **headers}))

    def error_body(self, error_type: str, message: str | None) -> JsonObject:
        """Return the Messages API error object, which is also a stream's `error` event."""
        return error_body(error_type, message, self.request_id)

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {self.dialect.id_header: self.request_id, **headers}
