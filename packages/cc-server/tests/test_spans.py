"""The server's spans: one for each request for a message, in the client's trace."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from warm_clients.api_data import BODY, MESSAGES, MODEL
from warm_clients.client import Client
from warm_clients.waiting import eventually, wait_for_ever

from .served import Served

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
USAGE = {"input_tokens": 60, "output_tokens": 40, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Return the exporter that gets the server's spans."""
    exporter, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("cc_server.request_record._TRACER", tracing.get_tracer("cc_server"))
    return exporter


async def only_span(exporter: InMemorySpanExporter) -> tuple[ReadableSpan, Mapping[str, Any]]:
    await eventually(lambda: len(exporter.get_finished_spans()) == 1)
    [span] = exporter.get_finished_spans()
    exporter.clear()
    return span, span.attributes or {}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_is_a_span_in_the_clients_trace(
    stream: bool, served: Served, client: Client, exporter: InMemorySpanExporter
) -> None:
    """MSG-125: model, tokens, cost and the API's address; other paths have none."""
    client.answers(lambda _: {"content": "Fine.", "usage": USAGE})
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    async with served.http() as http:
        await http.get("/v1/limits", headers=headers)
        response = await http.post(MESSAGES, json={**BODY, "stream": stream}, headers=headers)
    span, attributes = await only_span(exporter)
    assert span.name == f"chat {MODEL}"
    assert span.context is not None and span.parent is not None
    assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert span.status.status_code is StatusCode.UNSET
    if not stream:
        assert attributes["gen_ai.response.id"] == response.json()["id"]
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "claude-code",
        "gen_ai.request.model": MODEL,
        "gen_ai.response.model": MODEL,
        "gen_ai.usage.input_tokens": 70,
        "gen_ai.usage.output_tokens": 40,
        "gen_ai.usage.cache_read.input_tokens": 7,
        "gen_ai.usage.cache_creation.input_tokens": 3,
        "server.address": "127.0.0.1",
        "server.port": int(served.api.url.rpartition(":")[2]),
        "http.response.status_code": 200,
        "claude_code.client": "default",
    }
    assert {name: attributes.get(name) for name in expected} == expected
    assert 0 < attributes["operation.cost"] < 1


async def test_a_failed_request_is_a_failed_span(
    served: Served, client: Client, exporter: InMemorySpanExporter
) -> None:
    """MSG-125: also a request whose client leaves."""
    served.api.fail_next(529)
    await served.post()
    span, attributes = await only_span(exporter)
    assert (span.parent, span.status.status_code) == (None, StatusCode.ERROR)
    assert (attributes["error.type"], attributes["http.response.status_code"]) == ("overloaded_error", 529)
    assert "gen_ai.usage.input_tokens" not in attributes

    client.answers(wait_for_ever)
    served.api.requests.clear()
    async with served.http() as http:
        leaving = asyncio.create_task(http.post(MESSAGES, json=BODY))
        await eventually(lambda: served.api.requests)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
    span, attributes = await only_span(exporter)
    assert (span.status.status_code, attributes["error.type"]) == (StatusCode.ERROR, "client_left")
