"""Responses that Starlette does not have: one that is sent in steps, and one that breaks off.

Knows ASGI; what the bytes mean is decided elsewhere.
"""

import asyncio
from collections.abc import Mapping, Sequence

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from .errors import error_body
from .events import encode_event
from .types import JsonObject

EVENT_STREAM = "text/event-stream; charset=utf-8"


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


def event_response(
    events: Sequence[JsonObject], headers: Mapping[str, str], *, pause: float, cut: bool = False
) -> Response:
    """Return a stream of events, `pause` seconds before each; with `cut` it ends in the middle of the HTTP body."""
    chunks = [encode_event(event) for event in events]
    all_headers = {"content-type": EVENT_STREAM, "cache-control": "no-cache", **headers}
    return SteppedResponse(chunks, headers=all_headers, pause=pause, cut=cut)


def cut_json_response(content: JsonObject, headers: Mapping[str, str]) -> Response:
    """Return a JSON response that breaks off half-way."""
    whole = bytes(JSONResponse(content).body)
    half = whole[: len(whole) // 2]
    return SteppedResponse([half], headers={"content-type": "application/json", **headers}, cut=True)


def error_response(
    status: int, error_type: str, message: str | None, request_id: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the API's error body under an HTTP status."""
    body = error_body(error_type, message, request_id)
    return JSONResponse(body, status, {"request-id": request_id, **(headers or {})})
