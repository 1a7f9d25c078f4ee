"""OpenTelemetry spans for requests, by the conventions for generative AI. Without a tracer provider nothing happens.

A span has the names and attributes of pydantic-ai's spans, and continues the client's trace. Claude Code's own spans
become its children.
"""

import math
from collections.abc import Generator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import httpx2
from opentelemetry.trace import Span, SpanKind, StatusCode, get_current_span, get_tracer, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from .request_record import RequestRecord

__all__ = ["request_span"]

_TRACER = get_tracer("cc_messages")
_TRACE_CONTEXT = TraceContextTextMapPropagator()


@contextmanager
def request_span(request: httpx2.Request, record: RequestRecord, address: str) -> Generator[None]:
    """Open a span for a request, and put its trace context into the request's headers.

    Args:
        request: The request for the transport.
        record: Facts about it, complete at the end.
        address: The API's address.
    """
    # An instrumented ASGI server has continued the client's trace already.
    is_traced = get_current_span().get_span_context().is_valid
    parent = None if is_traced else _TRACE_CONTEXT.extract(request.headers)
    span = _TRACER.start_span("chat", parent, SpanKind.CLIENT)
    _TRACE_CONTEXT.inject(request.headers, set_span_in_context(span))
    try:
        yield
    finally:
        if span.is_recording():
            _describe(span, record, address)
        span.end()


def _describe(span: Span, record: RequestRecord, address: str) -> None:
    span.update_name(f"chat {record.model}")
    facts: dict[str, object] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "claude-code",
        "gen_ai.request.model": record.model,
        "gen_ai.response.id": record.response.get("id"),
        "gen_ai.response.model": record.response.get("model"),
        "http.response.status_code": record.status,
        "claude_code.client": record.client,
        "error.type": record.error or (None if record.has_ended else "client_left"),
    }
    with suppress(ValueError):  # an address with an invalid port
        facts |= {"server.address": urlsplit(address).hostname, "server.port": urlsplit(address).port}
    usage = record.usage
    if usage.requests:
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
