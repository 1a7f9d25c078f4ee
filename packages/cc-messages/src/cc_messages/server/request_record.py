"""The record of one HTTP request, taken from the messages that its client gets. Knows ASGI and the API's errors."""

import time
from dataclasses import dataclass, field

from pydantic_core import from_json
from starlette.types import Message, Send

from ..context.request_context import RequestReport

__all__ = ["ObservedSend", "RequestRecord"]

_PING = b"event: ping\n"
_ERROR = b"event: error\n"
_FIRST_FAILURE = 400
# The status of requests whose client left, as other servers log it.
_CLIENT_CLOSED_REQUEST = 499


@dataclass(slots=True)
class RequestRecord:
    """Facts about a request."""

    path: str
    began: float = field(default_factory=time.monotonic)
    client: str = ""
    """The name of the client; empty if it had no valid token."""
    status: int = _CLIENT_CLOSED_REQUEST
    """The status of the response; 499 if the client left before it."""
    error: str | None = None
    """The API's name for the error, in the response or at the end of its stream; `client_left`; None without one."""
    first_event_seconds: float | None = None
    """The time to the first event of a stream; None without a stream or an event."""
    report: RequestReport | None = None

    @property
    def seconds(self) -> float:
        """The time since its beginning."""
        return time.monotonic() - self.began


class ObservedSend:
    """ASGI's `send`, which fills a record.

    Args:
        send: Sends to the client.
        record: The record of the request.
    """

    def __init__(self, send: Send, record: RequestRecord) -> None:
        self._send, self._record = send, record
        self._is_stream = False
        self.has_begun = False
        """True if a response has begun."""
        self.has_ended = False
        """True if it was sent to its end."""

    async def __call__(self, message: Message) -> None:
        """Note a message, and send it."""
        self.has_begun = True
        if message["type"] == "http.response.start":
            self._record.status = message["status"]
            self._is_stream = any(value.startswith(b"text/event-stream") for _, value in message["headers"])
        elif chunk := message.get("body", b""):
            self._note(chunk)
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.has_ended = True

    def _note(self, chunk: bytes) -> None:
        record = self._record
        if not self._is_stream:
            if record.status >= _FIRST_FAILURE:
                record.error = _error_type(chunk)
            return
        if record.first_event_seconds is None and not chunk.startswith(_PING):
            record.first_event_seconds = record.seconds
        if _ERROR in chunk:
            record.error = _error_type(chunk[chunk.rindex(_ERROR) :].partition(b"data: ")[2])


def _error_type(body: bytes) -> str:
    try:
        return str(from_json(body, allow_partial="trailing-strings")["error"]["type"])
    except (ValueError, LookupError, TypeError):
        return "api_error"
