"""What is told to those who watch: right spans, silent logs, and not a word to anybody else."""

import logging

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, InstrumentationSettings
from pydantic_ai.models.instrumented import InstrumentedModel

from api_script import echo
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel


async def test_a_span_names_the_way_and_the_price(model: ClaudeCodeModel) -> None:
    """MODEL-06, MODEL-71: what else it says is compared with `AnthropicModel` by scenarios."""
    exporter = InMemorySpanExporter()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    traced = InstrumentedModel(model, InstrumentationSettings(tracer_provider=tracing))
    result = await Agent(traced).run("Hello.")
    [span] = [span for span in exporter.get_finished_spans() if span.name.startswith("chat ")]
    said = dict(span.attributes or {})
    assert said["gen_ai.provider.name"] == "claude-code"
    assert said["server.address"] == "api.anthropic.com"
    assert said["gen_ai.response.id"] == result.response.provider_response_id
    assert said["gen_ai.response.finish_reasons"] == ("stop",)
    assert result.response.usage.cost is not None
    assert said["operation.cost"] == pytest.approx(float(result.response.usage.cost))  # pyright: ignore[reportUnknownMemberType]


async def test_the_cli_calls_nothing_but_messages(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-71: its own telemetry is silent."""
    agent = Agent(model)

    @agent.tool_plain
    def number() -> int:
        """A number."""
        return 2

    await agent.run("A number.")
    assert [call.path for call in loopback.calls] == ["/v1/messages"] * 2


async def test_logs_hold_no_prompt_and_no_key(
    loopback: LoopbackServer, model: ClaudeCodeModel, caplog: pytest.LogCaptureFixture
) -> None:
    """MODEL-72: at any level, also when something goes wrong."""
    loopback.respond = echo
    # The client of the API and the loopback API log what they are sent, in this process only in tests.
    ours = ("cc_model", "cc_messages", "cc_session", "cc_ipc", "claude_agent_sdk")
    with caplog.at_level(logging.DEBUG):
        await Agent(model, instructions="A secret instruction.").run("A secret prompt.")
        loopback.fail_next(500)
        with pytest.raises(Exception, match="500"):
            await Agent(model).run("Another secret prompt.")
    said = [record.getMessage() for record in caplog.records if record.name.startswith(ours)]
    assert not [line for line in said if "secret" in line or loopback.env()["ANTHROPIC_API_KEY"] in line]
