"""Telemetry: correct spans, silent logs, and no data for third parties."""

import asyncio
import logging
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic
from anyio import to_thread
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, InstrumentationSettings
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.models.instrumented import InstrumentedModel

from api_script import echo, number
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, claude_code
from otlp_receiver import receiving
from processes import at_rest


def exporting() -> tuple[InMemorySpanExporter, InstrumentationSettings]:
    exporter, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, InstrumentationSettings(tracer_provider=tracing)


async def test_a_span_names_the_way_and_the_price(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-06, MODEL-71: scenarios compare the other attributes with `AnthropicModel`."""
    exporter, instrumentation = exporting()
    traced = InstrumentedModel(model, instrumentation)
    result = await Agent(traced).run("Hello.")
    [span] = [span for span in exporter.get_finished_spans() if span.name.startswith("chat ")]
    attributes = dict(span.attributes or {})
    assert attributes["gen_ai.provider.name"] == "claude-code"
    # The address that the CLI asks.
    assert f"http://{attributes['server.address']}:{attributes['server.port']}" == loopback.url
    assert attributes["gen_ai.response.id"] == result.response.provider_response_id
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert result.response.usage.cost is not None
    assert attributes["operation.cost"] == pytest.approx(float(result.response.usage.cost))  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.worlds
async def test_a_request_is_a_single_span(loopback: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """MODEL-103: no second by the API client, whose own instrumentation stays on elsewhere."""
    exporter, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", tracing)
    async with ClaudeCodeProvider(env=loopback.env(), max_retries=0) as provider:
        traced = InstrumentedModel(ClaudeCodeModel(provider=provider))
        await Agent(traced).run("Hello.")
        async with Agent(traced).run_stream("And you?") as run:
            await run.get_output()
    names = [span.name for span in exporter.get_finished_spans()]
    assert [name for name in names if "claude" in name or "anthropic" in name] == ["chat claude-sonnet-5"] * 2, names
    exporter.clear()
    async with AsyncAnthropic(api_key="key", base_url=loopback.url) as direct:
        await direct.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hello."}])
    assert [span.name for span in exporter.get_finished_spans()] == ["anthropic.messages.create"]


@pytest.mark.worlds
async def test_spans_of_the_cli_are_children_of_the_request(loopback: LoopbackServer) -> None:
    """MODEL-71, MSG-67: also for the process's next request; the API gets the trace headers."""
    exporter, instrumentation = exporting()
    with receiving() as receiver:
        async with ClaudeCodeProvider(env={**loopback.env(), **receiver.env()}, max_retries=0) as provider:
            traced = InstrumentedModel(ClaudeCodeModel(provider=provider), instrumentation)
            await Agent(traced).run("Hello.")
            await Agent(traced).run("And you?")
            await Agent(ClaudeCodeModel(provider=provider)).run("Without a span.")
            inner = await to_thread.run_sync(receiver.wait_for, "claude_code.interaction", 3)
            assert len(provider.transport.pids) == 1

    ours = [span.context for span in exporter.get_finished_spans() if span.name.startswith("chat ")]
    expected = [(f"{context.trace_id:032x}", f"{context.span_id:016x}") for context in ours if context is not None]
    assert [(span.trace_id, span.parent_id) for span in inner[:2]] == expected
    assert len({span.trace_id for span in inner}) == 3
    trace_ids = [call.headers.get("traceparent", "").split("-")[1:2] for call in loopback.calls]
    assert trace_ids == [[span.trace_id] for span in inner]


async def test_without_telemetry_of_the_cli_a_span_costs_nothing(
    loopback: LoopbackServer, model: ClaudeCodeModel
) -> None:
    """MSG-67"""
    with TracerProvider().get_tracer("t").start_as_current_span("outer"):
        await Agent(model).run("Hello.")
    assert "traceparent" not in loopback.calls[-1].headers


async def test_the_cli_calls_nothing_but_messages(loopback: LoopbackServer, own_model: ClaudeCodeModel) -> None:
    """MODEL-71: the CLI's telemetry is silent, also at the start."""
    await Agent(own_model, tools=[number]).run("A number.")
    assert [call.path for call in loopback.calls] == ["/v1/messages"] * 2


@pytest.mark.worlds
async def test_the_cli_calls_no_other_host(loopback: LoopbackServer) -> None:
    """MODEL-71: requests to other hosts would go through this proxy."""
    requests: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readline())
        writer.close()

    proxy = await asyncio.start_server(note, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    # Settings in the loopback API's environment would hide the behaviour under test.
    env = {name: value for name, value in loopback.env().items() if name != "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"}
    async with proxy, ClaudeCodeProvider(env={**env, "HTTPS_PROXY": address, "HTTP_PROXY": address}) as provider:
        agent = Agent(ClaudeCodeModel(provider=provider))
        first = await agent.run("Hello.")
        loopback.fail_next(400)
        with pytest.raises(ModelHTTPError):
            await agent.run("Fail.", message_history=first.all_messages())
    assert len(loopback.calls) >= 2
    assert not requests


async def leave_at_once(provider: ClaudeCodeProvider, prompt: str) -> None:
    """Close a stream that an error follows."""
    body = {
        "model": "claude-sonnet-5",
        "max_tokens": 9,
        "stream": True,
        "messages": [{"role": "user", "content": prompt}],
    }
    async with (
        httpx2.AsyncClient(transport=provider.transport, base_url="http://claude") as http,
        http.stream("POST", "/v1/messages", json=body) as response,
    ):
        await anext(response.aiter_bytes())
    await at_rest(provider)


FAILURES: list[dict[str, Any]] = [
    {"status": 400}, {"status": 500}, {"status": 529, "after_events": 3}, {"after_events": 3},
]  # fmt: skip


@pytest.mark.parametrize(
    "tools", [(), pytest.param(("Read",), marks=pytest.mark.worlds)], ids=["the agent's loop", "the CLI's loop"]
)
async def test_logs_hold_no_prompt_and_no_key(
    tools: tuple[str, ...], loopback: LoopbackServer, own_provider: ClaudeCodeProvider, caplog: pytest.LogCaptureFixture
) -> None:
    """MODEL-72: at any level, also after API errors that quote the prompt."""
    # The API client and the loopback API log requests; the latter is in this process only in tests.
    ours = ("cc_model", "cc_messages", "cc_session", "cc_ipc", "claude_agent_sdk")
    agent = Agent(
        ClaudeCodeModel(provider=own_provider),
        instructions="A secret instruction.",
        capabilities=[claude_code(tools=tools)] if tools else [],
    )
    with caplog.at_level(logging.DEBUG):
        loopback.respond = echo
        await agent.run("A secret prompt.")
        for failure in FAILURES:
            loopback.reset()
            loopback.fail_next(**failure, message="No 'Another secret prompt.'", times=3)
            with pytest.raises(ModelAPIError):
                await agent.run("Another secret prompt.")
            await at_rest(own_provider)
        loopback.reset()
        loopback.fail_next(400, after_events=3, message="No 'Another secret prompt.'")
        await leave_at_once(own_provider, "Another secret prompt.")
    lines = [record.getMessage() for record in caplog.records if record.name.startswith(ours)]
    assert not [line for line in lines if "secret" in line or loopback.env()["ANTHROPIC_API_KEY"] in line]
