"""Streaming: the same events in the same order with each framework API, and the same history as without."""

from collections.abc import AsyncIterable
from typing import Any, cast

from pydantic_ai import Agent, CancellationToken, NativeOutput, RunContext, ToolOutput
from pydantic_ai.exceptions import RunCancelled, UsageLimitExceeded
from pydantic_ai.messages import AgentStreamEvent, ModelMessage, ModelResponse
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.run import AgentRunResult, AgentRunResultEvent
from pydantic_ai.usage import UsageLimits
from pydantic_graph import End

from api_script import call, echo, steps, text, thought

from .outputs import PARIS, PARIS_JSON, City
from .scenario import HAIKU, SONNET, Theme
from .tools import lucky_number

streams = Theme("streams")

LONG = "one two three four five six seven eight nine ten"
A_TURN = steps(
    [thought("A number is wanted."), text("I will look. "), call("lucky_number", low=1, high=3)],
    [text("It is "), text("two, to be exact.")],
)


async def events_of(agent: Agent[object, Any], prompt: str, **options: Any) -> list[object]:
    """Return all events in a run, the last with the whole result."""
    async with agent.run_stream_events(prompt, **options) as stream:
        return [event.result if isinstance(event, AgentRunResultEvent) else event async for event in stream]


def _messages(events: list[object]) -> list[ModelMessage]:
    result = events[-1]
    assert isinstance(result, AgentRunResult)
    return cast("AgentRunResult[object]", result).all_messages()


@streams.scenario(echo, on=(SONNET, HAIKU))
async def events_of_a_text(model: AnthropicModel) -> object:
    """MODEL-42, MODEL-43, ARCH-19"""
    return await events_of(Agent(model), "How are you today, and how is the weather?")


@streams.scenario(A_TURN, on=(SONNET, HAIKU))
async def events_of_thinking_tools_and_texts(model: AnthropicModel) -> object:
    """MODEL-42, MODEL-43: deltas of thinking, text and arguments, by block."""
    return await events_of(Agent(model, tools=[lucky_number]), "A number.")


@streams.scenario(
    steps(
        [
            thought("One."),
            {"type": "redacted_thinking", "data": "ZGF0YQ=="},
            thought("Two.", "c2lnbmVkIHRvbw=="),
            call("lucky_number", low=1, high=3),
            call("lucky_number", low=3, high=5),
        ],
        "Two and four.",
        "Bye.",
    ),
    on=(SONNET, HAIKU),
)
async def events_of_redacted_thinking_and_parallel_calls(model: AnthropicModel) -> object:
    """MODEL-20, MODEL-37, MODEL-43: the next run sends everything back."""
    agent = Agent(model)

    # Without threads, so that results come in order.
    @agent.tool_plain(name="lucky_number")
    async def number(low: int, high: int) -> int:
        """A number between two."""
        return lucky_number(low, high)

    events = await events_of(agent, "Two numbers.")
    return [events, await agent.run("Thanks.", message_history=_messages(events))]


@streams.scenario(A_TURN, on=(SONNET, HAIKU))
async def the_same_turn_without_streaming(model: AnthropicModel) -> object:
    """MODEL-37, MODEL-47: the history is the same as with streaming."""
    agent = Agent(model, tools=[lucky_number])
    whole = await agent.run("A number.")
    streamed = (await events_of(agent, "A number."))[-1]
    return [whole, streamed]


@streams.scenario(A_TURN)
async def a_handler_of_events(model: AnthropicModel) -> object:
    """MODEL-42: a run with a handler streams too."""
    batches: list[list[AgentStreamEvent]] = []

    async def handle(ctx: RunContext[object], events: AsyncIterable[AgentStreamEvent]) -> None:
        batches.append([event async for event in events])

    return [await Agent(model, tools=[lucky_number]).run("A number.", event_stream_handler=handle), batches]


@streams.scenario(steps(LONG), on=(SONNET, HAIKU))
async def text_as_it_grows_and_as_deltas(model: AnthropicModel) -> object:
    """MODEL-43, ARCH-19"""
    agent = Agent(model)
    async with agent.run_stream("Count.") as grows:
        whole = [piece async for piece in grows.stream_text(debounce_by=None)]
    async with agent.run_stream("Count.") as comes:
        pieces = [piece async for piece in comes.stream_text(delta=True, debounce_by=None)]
    return [whole, pieces, grows.all_messages()]


@streams.scenario(steps(LONG))
async def text_that_is_debounced(model: AnthropicModel) -> object:
    """MODEL-44: the stream is opened, read and closed in different tasks."""
    async with Agent(model).run_stream("Count.") as stream:
        pieces = [piece async for piece in stream.stream_text(debounce_by=0.01)]
    # The number of pieces depends on the time.
    return [pieces[-1], stream.all_messages()]


@streams.scenario(steps(PARIS_JSON), on=(SONNET, HAIKU))
async def native_output_as_it_grows(model: AnthropicModel) -> object:
    """MODEL-32, MODEL-43"""
    async with Agent(model, output_type=NativeOutput(City)).run_stream("A city.") as stream:
        return [[part async for part in stream.stream_output(debounce_by=None)], stream.all_messages()]


@streams.scenario(steps([call("final_result", **PARIS)]), on=(SONNET, HAIKU))
async def tool_output_as_it_grows(model: AnthropicModel) -> object:
    """MODEL-33, MODEL-43"""
    async with Agent(model, output_type=ToolOutput(City)).run_stream("A city.") as stream:
        return [[part async for part in stream.stream_output(debounce_by=None)], stream.all_messages()]


@streams.scenario(A_TURN)
async def responses_as_they_grow(model: AnthropicModel) -> object:
    """MODEL-46: usage and finish reason are current at every step."""
    agent = Agent(model, tools=[lucky_number])
    values: list[object] = []
    async with agent.iter("A number.") as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for response in stream.stream_response(debounce_by=None):
                        values += [response, stream.usage]
    return [values, run.result]


@streams.scenario(steps([call("final_result", name="Paris")], [call("final_result", **PARIS)]), on=(SONNET, HAIKU))
async def a_streamed_output_that_is_wrong_first(model: AnthropicModel) -> object:
    """MODEL-18, MODEL-42: both answers have events."""
    return await events_of(Agent(model, output_type=ToolOutput(City)), "A city.")


@streams.scenario(steps([text("Let me see. "), call("lucky_number", low=1, high=3)]), raises=UsageLimitExceeded)
async def a_limit_in_the_middle_of_a_streamed_run(model: AnthropicModel) -> object:
    """MODEL-51"""
    agent = Agent(model, tools=[lucky_number])
    return await events_of(agent, "A number.", usage_limits=UsageLimits(request_limit=1))


@streams.scenario(steps(LONG, "Next."))
async def leaving_a_stream_in_the_middle(model: AnthropicModel) -> object:
    """MODEL-45, MODEL-51: later runs are not disturbed."""
    agent = Agent(model)
    first = ""
    async with agent.run_stream("Count.") as stream:
        async for piece in stream.stream_text(delta=True, debounce_by=None):
            first = piece
            break
    return [first, await agent.run("And now?")]


@streams.scenario(steps(LONG, "Next."))
async def cancelling_a_stream(model: AnthropicModel) -> object:
    """MODEL-45: events stop, the state is interrupted, and the history can be continued."""
    agent = Agent(model)
    async with agent.run_stream("Count.") as stream:
        async for _ in stream.stream_text(delta=True, debounce_by=None):
            await stream.cancel()
    [response] = [message for message in stream.all_messages() if isinstance(message, ModelResponse)]
    after = await agent.run("Go on.", message_history=stream.all_messages())
    # Whether the framework has set a price for the cancelled request depends on the time.
    return [stream.cancelled, response.state, response.parts, after.output]


@streams.scenario(steps(LONG), raises=RunCancelled)
async def cancelling_a_run_by_a_token(model: AnthropicModel) -> object:
    """MODEL-45"""
    token = CancellationToken()
    async with Agent(model).run_stream_events("Count.", cancellation_token=token) as stream:
        async for _ in stream:
            token.cancel()
    return "never"


@streams.scenario(A_TURN)
async def node_by_node(model: AnthropicModel) -> object:
    """MODEL-42, ARCH-19: a run that the caller iterates."""
    agent = Agent(model, tools=[lucky_number])
    names: list[str] = []
    async with agent.iter("A number.") as run:
        node = run.next_node
        while not isinstance(node, End):
            names.append(type(node).__name__)
            node = await run.next(node)
    return [names, run.result]


@streams.scenario(A_TURN)
async def nodes_of_which_some_are_streamed(model: AnthropicModel) -> object:
    """MODEL-42, MODEL-47"""
    agent = Agent(model, tools=[lucky_number])
    values: list[object] = []
    async with agent.iter("A number.") as run:
        async for node in run:
            if Agent.is_call_tools_node(node) or (Agent.is_model_request_node(node) and not values):
                async with node.stream(run.ctx) as stream:
                    values += [event async for event in stream]
    return [values, run.result]


@streams.scenario(A_TURN, on=(SONNET, HAIKU))
async def a_stream_that_ends_with_the_first_text(model: AnthropicModel) -> object:
    """MODEL-45: a streamed run uses the first text as output, and still runs the tools beside it."""
    agent = Agent(model, tools=[lucky_number])
    async with agent.run_stream("A number.") as stream:
        output = await stream.get_output()
    return [output, stream.all_messages(), stream.usage]
