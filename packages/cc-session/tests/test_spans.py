"""Turns are spans, for callers whose program has a tracer provider."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, Tracer

from cc_loopback import JsonObject, LoopbackServer, Reply
from cc_session import Session, SessionPool, TurnError, query

from .conftest import say

USAGE = {"input_tokens": 60, "output_tokens": 40, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}


def priced(_: JsonObject) -> Reply:
    return {"content": "Fine.", "usage": USAGE}


class Spans:
    def __init__(self) -> None:
        tracing = TracerProvider()
        self._exporter = InMemorySpanExporter()
        tracing.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = tracing.get_tracer("test")

    def all(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    def only(self) -> tuple[ReadableSpan, Mapping[str, Any]]:
        [span] = self.all()
        self._exporter.clear()
        return span, span.attributes or {}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    spans = Spans()
    monkeypatch.setattr("cc_session.session.stream._TRACER", spans.tracer)
    return spans


async def test_a_turn_is_a_span(server: LoopbackServer, session: Session, spans: Spans) -> None:
    """SES-100: whole or streamed, as a child of the caller's span."""
    server.respond = priced
    with spans.tracer.start_as_current_span("outer") as outer:
        turn = await session.run("Hello.")
        async with session.stream("And now?") as stream:
            _ = [message async for message in stream]
    both = spans.all()[:2]
    assert [span.name for span in both] == ["invoke_agent Claude Code"] * 2
    for span in both:
        assert span.parent == outer.get_span_context()
    attributes = dict(both[0].attributes or {})
    assert attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "claude-code",
        "gen_ai.agent.name": "Claude Code",
        "gen_ai.conversation.id": turn.session_id,
        "gen_ai.response.model": attributes["gen_ai.response.model"],
        "gen_ai.usage.input_tokens": 70,
        "gen_ai.usage.output_tokens": 40,
        "gen_ai.usage.cache_read.input_tokens": 7,
        "gen_ai.usage.cache_creation.input_tokens": 3,
        "operation.cost": turn.cost_usd,
    }
    assert str(attributes["gen_ai.response.model"]).startswith("claude-")
    assert turn.cost_usd > 0


async def test_a_failed_turn_is_a_failed_span(server: LoopbackServer, session: Session, spans: Spans) -> None:
    """SES-100: also a turn that the caller leaves with an error."""
    server.fail_next(400)
    with pytest.raises(TurnError):
        await session.run("Fail.")
    span, attributes = spans.only()
    assert (span.status.status_code, attributes["error.type"]) == (StatusCode.ERROR, "TurnError")
    server.respond = say("word " * 100)
    with pytest.raises(ZeroDivisionError):
        async with session.stream("Talk.") as stream:
            await anext(stream)
            raise ZeroDivisionError
    span, attributes = spans.only()
    assert (span.status.status_code, attributes["error.type"]) == (StatusCode.ERROR, "ZeroDivisionError")
    assert "gen_ai.usage.input_tokens" not in attributes


async def test_a_query_is_a_single_span(server: LoopbackServer, shared_pool: SessionPool, spans: Spans) -> None:
    """SES-100: the pool's own work makes none."""
    server.respond = say("Fine.")
    assert (await query("Hello.", pool=shared_pool)).text == "Fine."
    assert spans.only()[0].name == "invoke_agent Claude Code"
