"""A request's report, as attributes on the current span and as details in the response.

The spans are pydantic-ai's; this module opens none. docs/how-to/limits.md lists the names.
"""

from collections.abc import Callable
from typing import Any

from opentelemetry.trace import Span, get_current_span
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import StreamedResponse

from cc_messages import RequestContext, RequestReport


def set_span_attributes(report: RequestReport | None) -> None:
    """Set the report attributes on pydantic-ai's span for the request; do nothing without such a span."""
    span = get_current_span()
    if report is not None and span.is_recording() and _is_chat(span):
        span.set_attributes(_attributes(report))


def with_details(response: ModelResponse, report: RequestReport | None) -> ModelResponse:
    """Return the response with the report in `provider_details`."""
    if report is not None:
        response.provider_details = {**(response.provider_details or {}), **_details(report)}
    return response


def add_to_stream(stream: StreamedResponse, context: RequestContext, mark: Callable[[ModelResponse], object]) -> None:
    """Add the report to the `provider_details` in each response from the stream."""
    get = stream.get
    # Do not use the stream details: pydantic-ai adds to them at the end, and earlier responses share them.

    def response() -> ModelResponse:
        result = with_details(get(), context.report)
        mark(result)
        return result

    stream.get = response


def _details(report: RequestReport) -> dict[str, Any]:
    """Return the report as plain JSON, since histories will have it."""
    facts: dict[str, Any] = {
        "claude_code": {
            "process_started": report.process_started,
            "process_wait_ms": _milliseconds(report),
            "queue_length": report.queue_length,
        }
    }
    if report.login_expires_at is not None:
        facts["claude_code"]["login_expires_at"] = report.login_expires_at.isoformat()
    if report.rate_limits is not None:
        facts["rate_limits"] = report.rate_limits.model_dump(mode="json")
    return facts


def _attributes(report: RequestReport) -> dict[str, bool | int | float | str]:
    attributes: dict[str, bool | int | float | str] = {
        "claude_code.process.started": report.process_started,
        "claude_code.process.wait_ms": _milliseconds(report),
        "claude_code.queue.length": report.queue_length,
    }
    if (limits := report.rate_limits) is not None:
        if limits.status is not None:
            attributes["claude_code.rate_limit.status"] = limits.status
        for window in limits.windows:
            if window.utilization is not None:
                attributes[f"claude_code.rate_limit.{window.kind}.utilization"] = window.utilization
    return attributes


def _milliseconds(report: RequestReport) -> float:
    return round(report.wait_seconds * 1000, 1)


def _is_chat(span: Span) -> bool:
    # Skip the application span, which may cover many requests. OpenTelemetry's API cannot read attributes.
    return getattr(span, "attributes", {}).get("gen_ai.operation.name") == "chat"
