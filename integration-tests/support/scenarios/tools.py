"""Function tools: the framework runs them, so dependencies, retries, order and results are the framework's."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    ImageUrl,
    ModelRetry,
    RunContext,
    Tool,
    ToolDefinition,
    ToolFailed,
    ToolReturn,
)
from pydantic_ai.capabilities import Hooks
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.usage import UsageLimits

from api_script import call, steps, text

from .media import PDF, PNG
from .scenario import HAIKU, SONNET, Theme

tools = Theme("tools")


@dataclass
class Log:
    """Dependencies with a log."""

    lines: list[str] = field(default_factory=list[str])


class Place(BaseModel):
    city: str
    height: float | None = None


def lucky_number(low: int, high: int) -> int:
    """A number between two."""
    return (low + high) // 2


@tools.scenario(on=(SONNET, HAIKU))
async def parallel_calls_of_which_one_is_retried(model: AnthropicModel) -> object:
    """MODEL-18, MODEL-37, MODEL-52"""
    agent = Agent(model, deps_type=Log, instructions="You are helpful.")

    @agent.tool
    def get_weather(ctx: RunContext[Log], city: str) -> str:
        """The weather in a city."""
        ctx.deps.lines.append(f"try {ctx.retry}")
        if ctx.retry == 0:
            raise ModelRetry("The weather station is slow; ask again.")
        return f"sunny in {city}"

    @agent.tool_plain
    def get_time(city: str, with_seconds: bool = False) -> dict[str, Any]:
        """The time in a city."""
        return {"city": city, "time": "12:00", "seconds": with_seconds}

    log = Log()
    return [await agent.run("Weather and time in Paris?", deps=log), log.lines]


@tools.scenario(
    steps([text("A "), call("slow", name="a"), text("B "), call("slow", name="b"), call("quick")], "Done."),
)
async def calls_with_text_between_that_end_in_another_order(model: AnthropicModel) -> object:
    """MODEL-37, MODEL-57"""
    ended: list[str] = []
    quick_is_done = asyncio.Event()
    agent = Agent(model)

    @agent.tool_plain
    async def slow(name: str) -> str:
        """Wait for the other tool."""
        await quick_is_done.wait()
        ended.append(name)
        return name

    @agent.tool_plain
    async def quick() -> str:
        """Be quick."""
        ended.append("quick")
        quick_is_done.set()
        return "quick"

    return [await agent.run("All."), ended]


@tools.scenario(steps([call("step", number=1), call("barrier"), call("step", number=2)], "Done."))
async def a_sequential_tool_is_a_barrier(model: AnthropicModel) -> object:
    """MODEL-52"""
    log: list[str] = []
    agent = Agent(model)

    @agent.tool_plain
    async def step(number: int) -> int:
        """Make a step."""
        log.append(f"begin {number}")
        await asyncio.sleep(0)
        log.append(f"end {number}")
        return number

    @agent.tool_plain(sequential=True)
    async def barrier() -> None:
        """Wait for all before."""
        log.append("barrier")

    return [await agent.run("Go."), log]


@tools.scenario(steps([call("nothing_of_this_name", depth=3), call("lucky_number", low=1, high=3)], "Never mind."))
async def an_unknown_tool(model: AnthropicModel) -> object:
    """MODEL-38: the framework answers the call, and the API gets the text."""
    return await Agent(model, tools=[lucky_number]).run("A number.")


@tools.scenario(steps([call("nothing")], [call("nothing")]), raises=UnexpectedModelBehavior)
async def an_unknown_tool_again_and_again(model: AnthropicModel) -> object:
    """MODEL-38, MODEL-51"""
    return await Agent(model, tools=[lucky_number], retries=1).run("A number.")


@tools.scenario(steps([call("lucky_number", low="one")], [call("lucky_number", low=1, high=3)], "Two."))
async def arguments_that_do_not_fit(model: AnthropicModel) -> object:
    """MODEL-18, MODEL-52"""
    return await Agent(model, tools=[lucky_number]).run("A number.")


@tools.scenario(steps([call("fail")], [call("fail")], [call("fail")]), raises=UnexpectedModelBehavior)
async def retries_until_they_are_used_up(model: AnthropicModel) -> object:
    """MODEL-51, MODEL-52"""
    agent = Agent(model)

    @agent.tool_plain(retries=2)
    def fail() -> None:
        """Fail."""
        raise ModelRetry("Not this time.")

    return await agent.run("Try.")


@tools.scenario(steps([call("broken")]), raises=ZeroDivisionError)
async def a_tool_that_crashes(model: AnthropicModel) -> object:
    """MODEL-51: the tool's error ends the run, and the open call has no effect on later runs."""

    def broken() -> float:
        """Divide by zero."""
        return 1 / 0

    return await Agent(model, tools=[broken]).run("Try.")


@tools.scenario(steps([call("missing"), call("lucky_number", low=1, high=3)], "I see."))
async def a_tool_that_has_failed_for_good(model: AnthropicModel) -> object:
    """MODEL-15: a failed result is an error on the wire; the other result beside it is not."""
    agent = Agent(model, tools=[lucky_number])

    @agent.tool_plain
    def missing() -> None:
        """Look for a missing file."""
        raise ToolFailed("There is no such file.")

    return await agent.run("Look.")


@tools.scenario(steps([call("sleep")], "Too slow."))
async def a_tool_that_takes_too_long(model: AnthropicModel) -> object:
    """MODEL-52"""
    agent = Agent(model)

    @agent.tool_plain(timeout=0.01)
    async def sleep() -> None:
        """Sleep."""
        await asyncio.Event().wait()

    return await agent.run("Sleep.")


@tools.scenario(steps([call("anything", of=kind) for kind in ("none", "text", "model", "list", "empty", "float")], "?"))
async def results_of_every_kind(model: AnthropicModel) -> object:
    """MODEL-15"""
    results: dict[str, Any] = {
        "none": None,
        "text": "plain",
        "model": Place(city="Lyon"),
        "list": [Place(city="Nice", height=1.5), {"deep": [1, None]}],
        "empty": "",
        "float": 0.1,
    }

    def anything(of: str) -> Any:
        """Return something."""
        return results[of]

    return await Agent(model, tools=[anything]).run("All kinds.")


@tools.scenario(steps([call("look", at="tower")], "Nice."), on=(SONNET, HAIKU))
async def a_result_with_content_and_metadata(model: AnthropicModel) -> object:
    """MODEL-16: content beside the result reaches the next body after it."""

    def look(at: str) -> ToolReturn[str]:
        """Look at something."""
        content = ["This is it:", BinaryContent(PNG, media_type="image/png"), "Isn't it?"]
        return ToolReturn(f"saw the {at}", content=content, metadata={"not": "for the model"})

    return await Agent(model, tools=[look]).run("Look at the tower.")


@tools.scenario(steps([call("look", at="tower"), call("look", at="bridge")], "Nice."))
async def two_results_with_content(model: AnthropicModel) -> object:
    """MODEL-16"""

    def look(at: str) -> ToolReturn[str]:
        """Look at something."""
        return ToolReturn(f"saw the {at}", content=f"The {at} is old.")

    return await Agent(model, tools=[look]).run("Look.")


@tools.scenario(steps([call("show")], "Pretty."), on=(SONNET, HAIKU))
async def files_as_results(model: AnthropicModel) -> object:
    """MODEL-15: files stay inside the result."""

    def show() -> list[Any]:
        """Show files."""
        picture, document = BinaryContent(PNG, media_type="image/png"), BinaryContent(PDF, media_type="application/pdf")
        return ["a picture", picture, "and a document", document, ImageUrl("https://example.com/a.png")]

    return await Agent(model, tools=[show]).run("Show.")


@tools.scenario(steps([call("listen")], "I cannot hear."))
async def a_sound_as_a_result(model: AnthropicModel) -> object:
    """MODEL-04: content without a block type in the API becomes a note."""

    def listen() -> BinaryContent:
        """Record."""
        return BinaryContent(b"ID3", media_type="audio/mpeg")

    return await Agent(model, tools=[listen]).run("Listen.")


@tools.scenario(steps([call("think")], "Yes, both."))
async def a_tool_that_enqueues_more(model: AnthropicModel) -> object:
    """MODEL-16"""

    def think(ctx: RunContext[object]) -> str:
        """Think about it."""
        ctx.enqueue(UserPromptPart("And consider the weather."))
        return "thought"

    return await Agent(model, tools=[think]).run("Decide.")


@tools.scenario(steps([call("Bash", command="ls"), call("n" * 64), call("mcp__files__read")], "Done."))
async def names_that_could_collide(model: AnthropicModel) -> object:
    """MODEL-54: names are kept, also those of the CLI's own tools."""

    def run(command: str) -> str:
        """Run a command."""
        return f"ran {command}"

    def long() -> str:
        """Have a long name."""
        return "long"

    def read() -> str:
        """Read like a server's tool."""
        return "read"

    named = [Tool(run, name="Bash"), Tool(long, name="n" * 64), Tool(read, name="mcp__files__read")]
    return await Agent(model, tools=named).run("All.")


@tools.scenario(on=(SONNET, HAIKU))
async def a_schema_with_everything(model: AnthropicModel) -> object:
    """MODEL-53: name, description and schema are sent, and no local data."""
    agent = Agent(model)

    @agent.tool_plain(metadata={"secret": 1}, timeout=5, sequential=True, strict=None, retries=3)
    def travel(
        places: list[Place], by: dict[str, int], note: str | None = None, *, at: float = 1.5, fast: bool = False
    ) -> str:
        """Travel.

        Args:
            places: Where to, in order.
            by: By what, and how often.
            note: A note.
            at: At what speed.
            fast: Whether to hurry.
        """
        return "arrived"

    return await agent.run("Travel.")


@tools.scenario(steps([call("first")], [call("second")], "Done."))
async def tools_that_change_in_each_step(model: AnthropicModel) -> object:
    """MODEL-12, MODEL-56"""

    async def only_first(ctx: RunContext[object], tool: ToolDefinition) -> ToolDefinition | None:
        return tool if ctx.run_step == 1 else None

    async def numbered(ctx: RunContext[object], tool: ToolDefinition) -> ToolDefinition:
        tool.description = f"For step {ctx.run_step}."
        return tool

    def first() -> str:
        """Be first."""
        return "first"

    def second() -> str:
        """Be second."""
        return "second"

    offered = [Tool(first, prepare=only_first), Tool(second, prepare=numbered)]
    return await Agent(model, tools=offered).run("Both.")


@tools.scenario(steps([call("lucky_number", low=1, high=3)], "Two."))
async def hooks_around_a_tool(model: AnthropicModel) -> object:
    """MODEL-52"""
    log: list[str] = []

    async def before(
        ctx: RunContext[object], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        log.append(f"before {call.tool_name} {args}")
        return {**args, "high": 5}

    agent = Agent(model, tools=[lucky_number], capabilities=[Hooks(before_tool_execute=before)])
    return [await agent.run("A number."), log]


@tools.scenario(steps([call("lucky_number", low=1, high=3)] * 2), raises=UsageLimitExceeded)
async def a_limit_of_requests(model: AnthropicModel) -> object:
    """MODEL-51: the run ends while a call is open."""
    return await Agent(model, tools=[lucky_number]).run("A number.", usage_limits=UsageLimits(request_limit=1))


@tools.scenario(steps([call("lucky_number", low=1, high=n) for n in (3, 5)]), raises=UsageLimitExceeded)
async def a_limit_of_tool_calls(model: AnthropicModel) -> object:
    """MODEL-51, MODEL-52"""
    return await Agent(model, tools=[lucky_number]).run("Numbers.", usage_limits=UsageLimits(tool_calls_limit=1))


@tools.scenario(steps([call("lucky_number", low=1, high=3)]), raises=UsageLimitExceeded)
async def a_limit_of_tokens(model: AnthropicModel) -> object:
    """MODEL-39, MODEL-51"""
    return await Agent(model, tools=[lucky_number]).run("A number.", usage_limits=UsageLimits(total_tokens_limit=100))


@tools.scenario(steps([call("lucky_number", low=1, high=3)]), raises=UsageLimitExceeded)
async def a_limit_of_input_tokens(model: AnthropicModel) -> object:
    """MODEL-39, MODEL-51"""
    return await Agent(model, tools=[lucky_number]).run("A number.", usage_limits=UsageLimits(input_tokens_limit=9))


@tools.scenario(steps([call("ask", question="Which?")], "The helper says: blue."))
async def an_agent_inside_a_tool(model: AnthropicModel) -> object:
    """MODEL-65"""
    helper = Agent(model, instructions="You are a helper.")
    greeting = [ModelRequest([UserPromptPart("Hi.")]), ModelResponse([TextPart("Hello.")])]

    async def ask(ctx: RunContext[object], question: str) -> str:
        """Ask a helper."""
        return (await helper.run([question, "Be brief."], usage=ctx.usage, message_history=greeting)).output

    return await Agent(model, tools=[ask]).run("Ask the helper.")
