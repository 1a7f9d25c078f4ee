"""The connection to the upstream API: it passes a request on, and the answer back as it arrives.

The client gets the same bytes as in a replay: the scrubbed answer. Only a secret that is spread over several events
passes, because each event is sent before the next has come; it is scrubbed before the answer is kept.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import cast

import httpx2
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..api.errors import CassetteError, UpstreamError
from ..api.types import Call
from .episodes import RecordedAnswer, TimedEvent
from .events import Event, encode_event_or_text, event_blocks, parse_event, parse_json
from .scrub import Scrubber

Keep = Callable[[RecordedAnswer], None]

# The API lets a client wait ten minutes for an answer without streaming.
_TIMEOUT = httpx2.Timeout(600, connect=10)
# Headers of a connection. The HTTP client sets its own, so that it can decode the body.
_CONNECTION_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding"}
)
_LAST_EVENTS = ("message_stop", "error")


class Recorder:
    """Client of an upstream API, whose base URL has no slash at the end."""

    def __init__(self, upstream: str, scrubber: Scrubber) -> None:
        self._upstream = upstream
        self._scrubber = scrubber
        try:
            url = httpx2.URL(upstream)
        except httpx2.InvalidURL as error:
            raise CassetteError(f"the base URL of the API to record is invalid: {error}") from error
        if url.scheme not in ("http", "https") or not url.host:
            raise CassetteError("the base URL of the API to record must begin with http:// or https:// and a host")
        # Once, because it takes 100 ms; an unencrypted connection needs none.
        self._tls = httpx2.create_ssl_context() if url.scheme == "https" else False
        # Without the user name and password that a URL may contain.
        self._name = f"{url.scheme}://{url.netloc.decode()}"

    async def forward(self, call: Call, keep: Keep) -> Response:
        """Pass on a request, and return the response to the client. `keep` gets the answer, even from a broken stream.

        Raises:
            UpstreamError: The API cannot be reached, or the connection was lost within an answer that is not a stream.
        """
        started = time.monotonic()
        async with AsyncExitStack() as stack:
            try:
                # A client for each request, so that no connection has to be closed at the end.
                client = await stack.enter_async_context(httpx2.AsyncClient(timeout=_TIMEOUT, verify=self._tls))
                upstream = await stack.enter_async_context(self._send(client, call))
                answer = RecordedAnswer(upstream.status_code, self._scrubber.response_headers(upstream.headers))
                if upstream.headers.get("content-type", "").startswith("text/event-stream"):
                    events = _timed_events(upstream, self._scrubber, started)
                    return _Relay(answer, events, keep, stack.pop_all())
                text = (await upstream.aread()).decode(errors="replace")
            except httpx2.HTTPError as error:
                problem = f"{type(error).__name__} {error}".rstrip()
                raise UpstreamError(f"no answer from {self._name}, the API to record: {problem}") from error
        answer.after = time.monotonic() - started
        answer.body = self._scrubber.answer_body(parse_json(text))
        keep(answer)
        return Response(answer.http_body(), answer.status, answer.http_headers())

    def _send(self, client: httpx2.AsyncClient, call: Call) -> AbstractAsyncContextManager[httpx2.Response]:
        headers = {name: value for name, value in call.headers.items() if name not in _CONNECTION_HEADERS}
        url = httpx2.URL(f"{self._upstream}{call.path}", params=dict(call.query))
        return client.stream(call.method, url, headers=headers, content=call.raw)


async def _timed_events(
    upstream: httpx2.Response, scrubber: Scrubber, last_event_at: float
) -> AsyncIterator[TimedEvent]:
    """Yield the scrubbed events of a stream, each with the seconds since the last."""
    async for block in event_blocks(upstream.aiter_bytes()):
        event_before_at, last_event_at = last_event_at, time.monotonic()
        yield last_event_at - event_before_at, cast("Event", scrubber.answer_body(parse_event(block)))


class _Relay(Response):
    """Response that passes a stream on as it arrives, and keeps it when it ends."""

    def __init__(
        self, answer: RecordedAnswer, events: AsyncIterator[TimedEvent], keep: Keep, closing: AsyncExitStack
    ) -> None:
        super().__init__(status_code=answer.status, headers=answer.http_headers())
        # Starlette has set the length of the empty content; without a length the body is sent in chunks.
        del self.headers["content-length"]
        self._answer = answer
        self._events = events
        self._keep = keep
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response. The connection ends early if the API connection did."""
        events: list[TimedEvent] = []
        self._answer.events = events
        self._answer.cut = True
        async with self._closing:
            try:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async for seconds, event in self._events:
                    events.append((seconds, event))
                    await send({"type": "http.response.body", "body": encode_event_or_text(event), "more_body": True})
                self._answer.cut = False
            except httpx2.HTTPError:
                return
            finally:
                # A client may leave after the last event without waiting for the end of the body.
                last_data = events[-1][1] if events else ""
                self._answer.cut &= not (isinstance(last_data, dict) and last_data["type"] in _LAST_EVENTS)
                self._keep(self._answer)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
