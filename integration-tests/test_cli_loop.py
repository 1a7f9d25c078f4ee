"""The same agents in the framework's loop and the CLI's, over either transport: the results are equal."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelRetry, NativeOutput, RunContext, ToolOutput, ToolReturn
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded, UserError
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage, UsageLimits

from api_script import call
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel

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

SCENARIOS: dict[str, Callable[[ClaudeCodeModel], Agent[Deps, Any]]] = {
    "tools of all kinds": lambda model: Agent(model, deps_type=Deps, tools=TOOLS, retries=2),
    "an output tool": lambda model: Agent(model, deps_type=Deps, tools=TOOLS, retries=2, output_type=ToolOutput(City)),
    "a native output": lambda model: Agent(
        model, deps_type=Deps, tools=TOOLS, retries=2, output_type=NativeOutput(City)
    ),
    "instructions and a prefix": lambda model: Agent(
        model, deps_type=Deps, toolsets=[FunctionToolset[Deps]([add]).prefixed("math")], instructions="Be brief."
    ),
}


def calling(tool: str) -> Callable[[dict[str, Any]], Any]:
    """Answer each prompt with a tool call, by the request's name for the tool, and then with a word."""

    def respond(body: dict[str, Any]) -> Any:
        if any(block["type"] == "tool_result" for block in body["messages"][-1]["content"]):
            return "Done."
        [name] = [offered["name"] for offered in body["tools"] if offered["name"].endswith(tool)]
        return [call(name, a=1, b=2) if tool == "add" else call(name)]

    return respond


@pytest.mark.worlds
@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_the_clis_loop_ends_as_the_agents_does(
    scenario: str, transport: Transport, model: ClaudeCodeModel
) -> None:
    """IPC-P-50, IPC-P-51, IPC-P-56"""
    agent = SCENARIOS[scenario](model)
    own, clis = Deps(), Deps()
    expected = (await agent.run("Do it.", deps=own)).output
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    output = (await agent.run("Do it.", deps=clis)).output
    if isinstance(output, str):
        output = output.replace("mcp__pydantic_tools__", "")
    assert output == expected
    assert sorted(clis.calls) == sorted(own.calls)
    assert own.calls


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


LIMITS = {  # with the API calls and the tool calls before the end
    "requests": (UsageLimits(request_limit=3), 3, 3),
    "tool calls": (UsageLimits(tool_calls_limit=2), 3, 2),
    "input": (UsageLimits(input_tokens_limit=250), 3, 2),
    "total": (UsageLimits(total_tokens_limit=252), 3, 2),
    "output": (UsageLimits(output_tokens_limit=2), 3, 2),
    "one request": (UsageLimits(per_request_input_tokens_limit=99), 1, 0),
    "max_turns": (UsageLimits(), 3, 3),
}


@pytest.mark.parametrize(("limit", "is_streamed"), [(limit, number % 2 == 0) for number, limit in enumerate(LIMITS)])
async def test_a_limit_ends_a_run_as_in_the_agents_loop(
    limit: str, is_streamed: bool, loopback: LoopbackServer, model: ClaudeCodeModel, transport: Transport
) -> None:
    """IPC-P-57, MSG-143"""

    def respond(body: dict[str, Any]) -> Any:
        [name] = [offered["name"] for offered in body["tools"] if offered["name"].endswith("nothing")]
        return {"content": [call(name)], "usage": {"input_tokens": 100, "output_tokens": 1}}

    loopback.respond = respond
    agent, deps = Agent(model, deps_type=Deps, tools=TOOLS), Deps()
    limits, api_calls, tool_calls = LIMITS[limit]
    prompt = f"Go until the limit: {limit}, {is_streamed}."  # the turn of an earlier test may still end
    model.set_agent_toolsets(agent.toolsets, transport=transport, max_turns=3 if limit == "max_turns" else None)
    with pytest.raises(UsageLimitExceeded, match="max_turns=3" if limit == "max_turns" else "limit of"):
        if is_streamed:
            async with agent.run_stream(prompt, deps=deps, usage_limits=limits) as run:
                await run.get_output()
        else:
            await agent.run(prompt, deps=deps, usage_limits=limits)
    assert (sum(prompt in str(body) for body in loopback.requests), len(deps.calls)) == (api_calls, tool_calls)


async def test_a_limit_holds_for_tools_beside_a_call_that_ends_the_loop(
    loopback: LoopbackServer, model: ClaudeCodeModel, transport: Transport
) -> None:
    """IPC-P-57"""

    def respond(body: dict[str, Any]) -> Any:
        names = [tool["name"] for tool in body["tools"] if tool["name"].endswith(("nothing", "final_result"))]
        return {"content": [call(name) for name in names], "usage": {"input_tokens": 100, "output_tokens": 2}}

    loopback.respond = respond
    agent, deps = Agent(model, deps_type=Deps, tools=TOOLS, output_type=ToolOutput(City)), Deps()
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    with pytest.raises(UsageLimitExceeded, match="output_tokens_limit of 1"):
        await agent.run("Go.", deps=deps, usage_limits=UsageLimits(output_tokens_limit=1))
    assert (len(loopback.requests), deps.calls) == (1, [])


async def test_each_api_call_counts_as_a_request(
    loopback: LoopbackServer, model: ClaudeCodeModel, transport: Transport
) -> None:
    """IPC-P-57"""

    def respond(body: dict[str, Any]) -> Any:
        [name] = [offered["name"] for offered in body["tools"] if offered["name"].endswith("nothing")]
        answered = sum(message["role"] == "assistant" for message in body["messages"])
        content: list[dict[str, Any]] = [call(name)] if answered < 2 else [{"type": "text", "text": "Done."}]
        return {"content": content, "usage": {"input_tokens": 100, "output_tokens": 1}}

    loopback.respond = respond
    agent = Agent(model, deps_type=Deps, tools=TOOLS)
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    usage = RunUsage()
    await agent.run("Go.", deps=Deps(), usage=usage)
    async with agent.run_stream("Go.", deps=Deps(), usage=usage) as run:
        await run.get_output()
    counts = (usage.requests, usage.tool_calls, usage.input_tokens, usage.output_tokens)
    assert counts == (6, 4, 600, 6)


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


@pytest.mark.parametrize("steps", [[[1], [9], [1], [9]], [[1, 1], [9]], [[1, 9], [1]], [["one"], ["two"]]])
async def test_retries_are_counted_and_limited_as_in_the_agents_loop(
    steps: list[list[Any]], loopback: LoopbackServer, model: ClaudeCodeModel, transport: Transport
) -> None:
    """IPC-P-51"""
    seen: list[tuple[int, int, int]] = []

    def want_more(ctx: RunContext[object], number: int) -> str:
        seen.append((number, ctx.retry, ctx.run_step))
        if number < 5:
            raise ModelRetry("more")
        return "enough"

    def respond(body: dict[str, Any]) -> Any:
        step = sum(message["role"] == "assistant" for message in body["messages"])
        name = body["tools"][0]["name"]
        return [call(name, number=number) for number in steps[step]] if step < len(steps) else "Done."

    async def outcome() -> tuple[str, list[tuple[int, int, int]]]:
        seen.clear()
        try:
            return (await agent.run("Go.")).output, sorted(seen)
        except UnexpectedModelBehavior as error:
            return error.message, sorted(seen)

    loopback.respond = respond
    agent = Agent(model, tools=[want_more], retries=1)
    expected = await outcome()
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    assert await outcome() == expected


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
