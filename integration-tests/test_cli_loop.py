"""The same agents in the framework's loop and the CLI's, over either transport: the results are equal."""

import asyncio
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelRetry, RunContext, ToolOutput, ToolReturn
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded, UserError
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from api_script import call, text, with_usual_usage
from cc_convert.logs import read_logs
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from processes import eventually

Transport = Literal["sdk", "stdio"]

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c020000000b4944415478da63fcff1f0003030200efa2a75b"
    "0000000049454e44ae426082"
)


@dataclass
class Deps:
    calls: list[str] = field(default_factory=list[str])


class City(BaseModel):
    city: str
    population: int


# Module scope puts tests with equal tools side by side, so that they share processes.
@pytest.fixture(scope="module", params=["sdk", pytest.param("stdio", marks=pytest.mark.slow)])
def transport(request: pytest.FixtureRequest) -> Transport:
    return request.param


def add(ctx: RunContext[Deps], a: int, b: int) -> int:
    """Add two numbers."""
    ctx.deps.calls.append(f"add {a} {b}")
    return a + b


async def look_up(ctx: RunContext[Deps], city: str) -> dict[str, Any]:
    """Look up a city."""
    ctx.deps.calls.append(f"look_up {city}")
    await asyncio.sleep(0)
    return {"city": city, "population": 2_100_000}


def fussy(ctx: RunContext[Deps], name: str) -> str:
    """Want to be asked twice."""
    ctx.deps.calls.append(f"fussy {ctx.retry}")
    if ctx.retry == 0:
        raise ModelRetry("ask again")
    return f"hello {name}"


def picture(ctx: RunContext[Deps]) -> BinaryContent:
    """A picture."""
    ctx.deps.calls.append("picture")
    return BinaryContent(PNG, media_type="image/png")


def rich(ctx: RunContext[Deps]) -> ToolReturn[str]:
    """More than a value."""
    ctx.deps.calls.append("rich")
    return ToolReturn("done", metadata={"not": "for the model"})


def nothing(ctx: RunContext[Deps]) -> None:
    """Return nothing."""
    ctx.deps.calls.append("nothing")


# All agents that can have the same tools get them, to share processes.
TOOLS: list[Any] = [add, look_up, fussy, picture, rich, nothing]


def calling(tool: str) -> Callable[[dict[str, Any]], Any]:
    """Answer each prompt with a tool call, by the request's name for the tool, and then with a word."""

    def respond(body: dict[str, Any]) -> Any:
        if any(block["type"] == "tool_result" for block in body["messages"][-1]["content"]):
            return "Done."
        [name] = [offered["name"] for offered in body["tools"] if offered["name"].endswith(tool)]
        return [call(name, a=1, b=2) if tool == "add" else call(name)]

    return respond


async def test_an_image_reaches_the_model_as_in_the_agents_loop(
    loopback: LoopbackServer, model: ClaudeCodeModel, transport: Transport
) -> None:
    loopback.respond = calling("picture")
    agent = Agent(model, deps_type=Deps, tools=TOOLS)
    await agent.run("Show.", deps=Deps())
    (expected,) = loopback.requests[-1]["messages"][-1]["content"]
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    await agent.run("Show.", deps=Deps())
    (result,) = loopback.requests[-1]["messages"][-1]["content"]
    images = [[block["source"]["data"] for block in blocks["content"]] for blocks in (expected, result)]
    assert images[0] == images[1]


async def test_a_switch_of_loops_in_mid_conversation_loses_nothing(
    loopback: LoopbackServer, model: ClaudeCodeModel, transport: Transport
) -> None:
    loopback.respond = calling("add")
    agent = Agent(model, deps_type=Deps, tools=TOOLS)
    first = await agent.run("One.", deps=Deps())
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    second = await agent.run("Two.", deps=Deps(), message_history=first.all_messages())
    model.set_agent_toolsets(None)
    await agent.run("Three.", deps=Deps(), message_history=second.all_messages())
    messages = loopback.requests[-1]["messages"]
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert len(calls) == 3
    assert calls == results


def a_run(random: Random) -> tuple[list[list[Any]], bool, UsageLimits, bool]:
    """Return the steps of a run's answers, whether an output tool ends it, its limits, and whether it is streamed."""

    def make_call() -> dict[str, Any]:
        name = random.choice(["add", "nothing", "look_up"])
        arguments = {"add": {"a": random.randint(-9, 2**53), "b": 1}, "look_up": {"city": "Paris"}, "nothing": {}}
        return call(name, **arguments[name])

    steps: list[list[Any]] = []
    for _ in range(random.randint(0, 4)):
        calls = [make_call() for _ in range(random.randint(1, 3))]
        if random.random() < 0.3:  # alone: after too many retries the agent's loop begins no other call
            calls = [call("want_more", number=random.choice([1, 9]))]
        steps.append([*[text("Well.")][: random.randint(0, 1)], *calls])
    has_output_tool = random.random() < 0.5
    output = call("final_result", city="Paris", population=2)
    mixed_calls = [output, *random.sample([make_call(), call("want_more", number=2)], random.randint(0, 2))]
    random.shuffle(mixed_calls)
    limits, is_streamed = UsageLimits(), random.random() < 0.5
    match random.randint(0, 6):
        case 0:
            limits = UsageLimits(request_limit=random.randint(1, 4))
        case 1:
            limits = UsageLimits(tool_calls_limit=random.randint(0, 5))
        # In a stream, the agent's loop breaks off the answer that passes such a limit.
        case 2 if not is_streamed:
            limits = UsageLimits(output_tokens_limit=random.choice([29, 30, 60, 90]))
        case 3 if not is_streamed:
            limits = UsageLimits(total_tokens_limit=random.choice([161, 162, 324, 400]))
        case 4:
            limits = UsageLimits(per_request_input_tokens_limit=random.choice([131, 132]))
        case _:
            pass
    final_steps = [mixed_calls, [output]] if has_output_tool else [[text("Done.")]]
    return [*steps, *final_steps], has_output_tool, limits, is_streamed


@pytest.mark.parametrize("seed", range(120, 152))
async def test_a_run_has_the_same_calls_errors_and_usage_in_both_loops(
    seed: int, loopback: LoopbackServer, model: ClaudeCodeModel, transport: Transport
) -> None:
    """IPC-P-51, IPC-P-57, IPC-P-59: also one that a limit ends, or too many retries."""
    steps, has_output_tool, limits, is_streamed = a_run(Random(seed))
    prompt = f"Run {seed}."  # the turn of an earlier test may still end

    def want_more(ctx: RunContext[Deps], number: int) -> str:
        # The agent's loop takes what the CLI's has done for one step.
        step = "" if number == 2 else ctx.run_step
        ctx.deps.calls.append(f"want_more {number} {ctx.retry} {step}")
        if number < 5:
            raise ModelRetry("more")
        return "enough"

    def respond(body: dict[str, Any]) -> Any:
        answered = sum(message["role"] == "assistant" for message in body["messages"])
        names = {offered["name"].removeprefix("mcp__pydantic_tools__"): offered["name"] for offered in body["tools"]}
        return [block | {"name": names[block["name"]]} if "name" in block else block for block in steps[answered]]

    async def outcome() -> tuple[str, list[str], int, str]:
        loopback.requests.clear()
        deps, usage = Deps(), RunUsage()
        run = agent.run(prompt, deps=deps, usage=usage, usage_limits=limits, event_stream_handler=handler)
        try:
            end = repr((await run).output)
        except (UnexpectedModelBehavior, UsageLimitExceeded) as error:
            end = repr(error)
        usage.details = {}
        if is_streamed and limits.per_request_input_tokens_limit is not None:
            usage.output_tokens, usage.cost = 0, None  # of the answer that passes it, the CLI's loop may have more
        return end, sorted(deps.calls), sum(prompt in str(body) for body in loopback.requests), str(usage)

    async def read(_: object, events: AsyncIterable[object]) -> None:
        async for _ in events:
            pass

    loopback.respond = with_usual_usage(respond)
    handler = read if is_streamed else None
    output_type: Any = ToolOutput(City) if has_output_tool else str
    agent = Agent(
        model,
        deps_type=Deps,
        tools=[*TOOLS, want_more],
        retries=1,
        output_type=output_type,
        end_strategy=("early", "graceful", "exhaustive")[seed % 3],
    )
    expected = await outcome()
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    assert await outcome() == expected


@pytest.mark.parametrize(("place", "stream"), [("in a tool", False), ("in a tool", True), ("in an answer", True)])
async def test_a_run_that_is_broken_off_has_counted_each_call(
    place: str, stream: bool, slow_api: LoopbackServer, slow_provider: ClaudeCodeProvider, tmp_path: Path
) -> None:
    """IPC-P-57, MODEL-110: in the run's usage and span as in the agent's loop, and in the log."""

    async def wait(number: int) -> None:
        if place == "in a tool" and number == 2:
            await stop()

    async def read(_: object, events: AsyncIterable[object]) -> None:
        async for event in events:
            if place == "in an answer" and "Half" in str(event):
                await stop()

    async def stop() -> None:
        is_there.set()
        await asyncio.sleep(60)

    def respond(body: dict[str, Any]) -> Any:
        number = 1 + sum(message["role"] == "assistant" for message in body["messages"])
        [name] = [offered["name"] for offered in body["tools"] if offered["name"].endswith("wait")]
        return [text("Well." if number == 1 else "Half of it."), call(name, number=number)]

    async def outcome() -> tuple[RunUsage, list[object]]:
        is_there.clear()
        exporter.clear()
        usage = RunUsage()
        run = asyncio.ensure_future(agent.run("Begin.", usage=usage, event_stream_handler=read if stream else None))
        await asyncio.wait_for(is_there.wait(), 30)
        run.cancel()
        await asyncio.wait({run})
        usage.details = {}
        [span] = [span for span in exporter.get_finished_spans() if span.name.startswith("invoke_agent")]
        return usage, [
            (span.attributes or {})[f"gen_ai.aggregated_usage.{name}_tokens"] for name in ("input", "output")
        ]

    is_there = asyncio.Event()
    exporter, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentation = Instrumentation(settings=InstrumentationSettings(tracer_provider=tracing))
    slow_api.respond = with_usual_usage(respond)
    log = tmp_path / "runs.jsonl"
    model = ClaudeCodeModel(provider=ClaudeCodeProvider.over(slow_provider.transport, log=log, max_retries=0))
    agent = Agent(model, tools=[wait], capabilities=[instrumentation])
    expected = await outcome()
    log.unlink()
    model.set_agent_toolsets(agent.toolsets)
    usage, in_span = await outcome()
    assert (usage, in_span) == expected
    assert usage.requests == 2
    await eventually(lambda: max(row.tokens - row.output for row in read_logs(log).rows) == usage.input_tokens)


async def test_a_stream_that_is_left_has_counted_each_call(
    slow_api: LoopbackServer, slow_provider: ClaudeCodeProvider
) -> None:
    """IPC-P-57: also without an exception."""

    def respond(body: dict[str, Any]) -> Any:
        number = sum(message["role"] == "assistant" for message in body["messages"])
        [name] = [offered["name"] for offered in body["tools"] if offered["name"].endswith("add")]
        return "Two words." if number == 2 else [call(name, a=number, b=1)]

    async def outcome() -> RunUsage:
        usage = RunUsage()
        async with agent.run_stream("Begin.", deps=Deps(), usage=usage) as stream:
            async for _ in stream.stream_text(debounce_by=None):
                break
        usage.details = {}
        return usage

    slow_api.respond = with_usual_usage(respond)
    model = ClaudeCodeModel(provider=slow_provider)
    agent = Agent(model, deps_type=Deps, tools=[add])
    expected = await outcome()
    model.set_agent_toolsets(agent.toolsets)
    assert await outcome() == expected
    assert expected.requests == 3


async def test_a_limit_of_turns_ends_a_run(
    loopback: LoopbackServer, model: ClaudeCodeModel, transport: Transport
) -> None:
    """MSG-143"""

    def respond(body: dict[str, Any]) -> Any:
        [name] = [offered["name"] for offered in body["tools"] if offered["name"].endswith("nothing")]
        return [call(name)]

    loopback.respond = respond
    agent, deps = Agent(model, deps_type=Deps, tools=TOOLS), Deps()
    model.set_agent_toolsets(agent.toolsets, transport=transport, max_turns=3)
    with pytest.raises(UsageLimitExceeded, match="max_turns=3"):
        await agent.run("Go.", deps=deps)
    assert (len(loopback.requests), len(deps.calls)) == (3, 3)


async def test_arguments_arrive_as_the_model_wrote_them(
    loopback: LoopbackServer, model: ClaudeCodeModel, transport: Transport
) -> None:
    """MSG-142"""
    written: dict[str, Any] = {
        "numbers": [725653563933458433, 2**63, 10**30, -0.0, 0.1, 1.0, 1e-7, True, None],
        "keys": {"__proto__": 1, "1": 2, "0": 3, "deep": {"__proto__": {"a": 1}}},
    }
    got: list[str] = []

    def keep(numbers: list[Any], keys: dict[str, Any]) -> str:
        got.append(repr({"numbers": numbers, "keys": keys}))
        return "kept"

    def respond(body: dict[str, Any]) -> Any:
        return "Done." if len(body["messages"]) > 1 else [call(body["tools"][0]["name"], **written)]

    loopback.respond = respond
    agent = Agent(model, tools=[keep])
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    await agent.run("Keep.")
    assert got == [repr(written)]


@pytest.mark.parametrize(
    ("media_type", "data", "text"),
    [
        ("text/plain", b"plain", "plain"),
        ("text/csv", b"a,b", "a,b"),
        ("image/svg+xml", b"<svg/>", "<svg/>"),
        ("application/pdf", b"%PDF-1.4", None),
        ("audio/wav", b"RIFF", None),
        ("image/jpeg", b"\xff\xd8", None),
    ],
)
async def test_a_text_file_reaches_the_model_and_another_file_ends_the_run(
    media_type: str, data: bytes, text: str | None, loopback: LoopbackServer, model: ClaudeCodeModel,
    transport: Transport,
) -> None:  # fmt: skip
    """IPC-P-58"""

    def show() -> ToolReturn[str]:
        return ToolReturn("here", content=[BinaryContent(data, media_type=media_type)])

    loopback.respond = calling("show")
    agent = Agent(model, tools=[show])
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    if text is None:
        with pytest.raises(UserError, match=rf"'show' returned {media_type}.*set_agent_toolsets\(None\)"):
            await agent.run("Show.")
        assert len(loopback.requests) == 1
    else:
        await agent.run("Show.")
        (result,) = loopback.requests[-1]["messages"][-1]["content"]
        assert [block["text"] for block in result["content"]] == ["here", text]
