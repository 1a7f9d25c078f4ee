"""Conversion from recorded answers to responses."""

import asyncio

from starlette.responses import Response, StreamingResponse

from ..api.responses import paced
from .episodes import RecordedAnswer
from .events import encode_event_or_text, encode_json
from .scrub import REQUEST_ID


async def replayed(answer: RecordedAnswer, *, timing: bool) -> Response:
    """Return the response for a recorded answer, with `timing` as late and as slow as in the recording."""
    if answer.events is None:
        await asyncio.sleep(answer.after if timing else 0)
        return whole_response(answer)
    chunks = [encode_event_or_text(event) for _, event in answer.events]
    pauses = [after if timing else 0.0 for after, _ in answer.events]
    return StreamingResponse(paced(chunks, pauses, cut=answer.cut), answer.status, headers_of(answer))


def whole_response(answer: RecordedAnswer) -> Response:
    """Return the response for an answer that is not a stream."""
    content = answer.body.encode() if isinstance(answer.body, str) else encode_json(answer.body)
    return Response(content, answer.status, headers_of(answer))


def headers_of(answer: RecordedAnswer) -> dict[str, str]:
    """Return the answer's headers, with a request id, which clients expect."""
    return {**answer.headers, "request-id": REQUEST_ID}
