"""The record of an HTTP request, from the messages to the client: for metrics, the access log, and OpenTelemetry.

Knows ASGI and the API errors. The log and the span have no prompts and tokens. The span has the names and attributes
of pydantic-ai spans, by the conventions for generative AI, and continues the client trace. Claude Code spans
become its children. Without a tracer provider nothing happens.
"""

import logging
import math
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import httpx2
from opentelemetry.trace import Span, SpanKind, StatusCode, get_current_span, get_tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pydantic_core import from_json
from starlette.types import Message, Scope, Send

from cc_messages.internals import cost_of, usages_of
from cc_types import JsonValue

from .usage import Usage

if TYPE_CHECKING:
    from cc_messages import RequestContext, RequestReport

logger = logging.getLogger(__name__)

_ACCESS_LOG = logging.getLogger("cc_server.access")

_TRACER = get_tracer("cc_server")
_TRACE_CONTEXT = TraceContextTextMapPropagator()

# In the two forms of the server streams.
_PINGS = (b"event: ping\n", b": ping\n")
_ERRORS = (b"event: error\n", b'data: {"error":')
_FIRST_FAILURE = 400
# The status of requests whose client left, as other servers log it.
_CLIENT_CLOSED_REQUEST = 499
_SHOWN_CHARACTERS = 200


class RequestRecord:
    """Facts about a request, and ASGI's `send` for it, from whose messages they come."""

    def __init__(self, scope: Scope, send: Send, *, is_openai: bool = False) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.is_openai = is_openai
        """True if the client speaks an OpenAI protocol."""
        self.client = ""
        """The client name; empty without a valid token."""
        self.status = _CLIENT_CLOSED_REQUEST
        """The response status; 499 if the client left before it."""
        self.error: str | None = None
        """The API name for the error, in the response or at the end of the stream; or `client_left`."""
        self.first_event_seconds: float | None = None
        """The time to the first event of a stream; None without a stream or an event."""
        self.report: RequestReport | None = None
        self.model = ""
        """The model that the request names, if the body was parsed."""
        self.context: RequestContext | None = None
        """The facts that the transport tells about the request; None before it has it."""
        self.usage = Usage()
        self.response: Mapping[str, JsonValue] = {}
        """The API's last message that had counts, without content."""
        self.has_begun = False
        self.has_ended = False
        """True if the whole response was sent."""
        self._send = send
        self._began = time.monotonic()
        self._is_stream = False

    @property
    def seconds(self) -> float:
        """The time since the request began."""
        return time.monotonic() - self._began

    async def __call__(self, message: Message) -> None:
        """Note a message, and send it."""
        self.has_begun = True
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._is_stream = any(value.startswith(b"text/event-stream") for _, value in message["headers"])
        elif chunk := message.get("body", b""):
            self._note(chunk)
        await self._send(message)
        self.has_ended = message["type"] == "http.response.body" and not message.get("more_body", False)

    def count(self, message: Mapping[str, JsonValue]) -> Usage | None:
        """Return how much usage the API message adds; None without usage. May be called in any thread."""
        usages = usages_of(message)
        if not usages:
            return None
        amounts, cost = usages[0].amounts, cost_of(usages)
        if cost is None and not self.usage.requests:
            logger.warning("The model %r has no list price, so its dollars cannot be counted", usages[0].model[:100])
        cache_write = amounts.unsplit.cache_write_5m
        dollars = math.inf if cost is None else cost
        usage = Usage(1, amounts.input, amounts.output, amounts.cache_read, cache_write, dollars)
        added, self.usage, self.response = usage - self.usage, usage, message
        return added

    def log(self) -> None:
        """Log the finished request: client, method, path, model, status, input and output tokens, milliseconds."""
        facts = (self.client or "-", self.method, _shown(self.path), _shown(self.model) or "-", self.status)
        tokens = (self.usage.all_input, self.usage.output)
        _ACCESS_LOG.info("%s %s %s %s %d input=%d output=%d %.0fms", *facts, *tokens, self.seconds * 1000)

    @contextmanager
    def span(self, request: httpx2.Request, address: str) -> Generator[None]:
        """Open a span for a request to the API at `address`, and put its trace context into the request headers."""
        # An instrumented ASGI server has continued the client trace already.
        is_traced = get_current_span().get_span_context().is_valid
        parent = None if is_traced else _TRACE_CONTEXT.extract(request.headers)
        span = _TRACER.start_span("chat", parent, SpanKind.CLIENT)
        _TRACE_CONTEXT.inject(request.headers, set_span_in_context(span))
        try:
            yield
        finally:
            if span.is_recording():
                self._describe(span, address)
            span.end()

    def _describe(self, span: Span, address: str) -> None:
        span.update_name(f"chat {self.model}")
        facts: dict[str, object] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "claude-code",
            "gen_ai.request.model": self.model,
            "gen_ai.response.id": self.response.get("id"),
            "gen_ai.response.model": self.response.get("model"),
            "http.response.status_code": self.status,
            "claude_code.client": self.client,
            "error.type": self.error or (None if self.has_ended else "client_left"),
        }
        with suppress(ValueError):  # an address with an invalid port
            facts |= {"server.address": urlsplit(address).hostname, "server.port": urlsplit(address).port}
        if (usage := self.usage).requests:
            facts |= {
                "gen_ai.usage.input_tokens": usage.all_input,
                "gen_ai.usage.output_tokens": usage.output,
                "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
                "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
                "operation.cost": usage.dollars if math.isfinite(usage.dollars) else None,
            }
        for name, value in facts.items():
            if isinstance(value, str | int | float) and value != "":
                span.set_attribute(name, value)
        if facts["error.type"] is not None:
            span.set_status(StatusCode.ERROR)

    def _note(self, chunk: bytes) -> None:
        if not self._is_stream:
            if self.status >= _FIRST_FAILURE:
                self.error = _error_type(chunk)
            return
        if self.first_event_seconds is None and not chunk.startswith(_PINGS):
            self.first_event_seconds = self.seconds
        for mark in _ERRORS:
            if mark in chunk:
                self.error = _error_type(chunk[chunk.rindex(mark) :].partition(b"data: ")[2])


def _error_type(body: bytes) -> str:
    try:
        return str(from_json(body, allow_partial="trailing-strings")["error"]["type"])
    except (ValueError, LookupError, TypeError):
        return "api_error"


def _shown(text: str) -> str:
    """Return a client text without line breaks and blanks, which would allow it to invent log lines."""
    return quote(text[:_SHOWN_CHARACTERS], safe="/:@[]")
