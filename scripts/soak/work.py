"""Kinds of cases: prompts for agents, in a run or two, and the required answers.

A case puts a mark into all prompts and checks every result: another mark, or none, is wrong. The mark is also in each
request's instructions and metadata, and sometimes in a header. Some requests are cancelled in the first milliseconds
before they are made, and some are repeated word for word.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Literal

from claude_agent_sdk import create_sdk_mcp_server
from claude_agent_sdk import tool as sdk_tool
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, NativeOutput, ToolOutput
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import Tool

from cc_model import ClaudeCodeModel, ClaudeCodeModelSettings, ClaudeCodeProvider, claude_code
from cc_session import Question, Questions
from cc_types import JsonValue

from .api import ASK, FAILED, HUGE_CHARACTERS, HUGELY, LOOK, MARK, MARK_HEADER, SLOWLY

Transport = Literal["sdk", "stdio"]

# Seconds that a tool takes, so that other runs can overlap.
_LOOK_SECONDS = 0.01
# Seconds within which a run is cancelled; a run takes about as long.
_CANCEL_WITHIN = 0.3
# Shares of all requests, and the seconds in which a request's parameters are set.
_BROKEN_OFF_SHARE = 0.05
_BROKEN_OFF_WITHIN = 0.05
_REPEATED_SHARE = 0.3
_ASKED_AFTER_A_CANCEL_SHARE = 0.3
_TOOLS = 1_000
_HISTORY_CHARACTERS = 400_000  # about a hundred thousand tokens
_HISTORY_MESSAGES = 40
_MODELS = ("claude-sonnet-5", "claude-opus-4-8")


class WrongAnswerError(Exception):
    """An answer that belongs to another case."""


class ToolFailedError(Exception):
    """A case's tool could not be called."""


class MarkOutput(BaseModel):
    """A case's structured output."""

    mark: str


@dataclass
class Case:
    """A case, with separate random numbers."""

    mark: str
    provider: ClaudeCodeProvider
    other: ClaudeCodeProvider
    """Provider for a continuation, as if on another machine."""
    random: Random
    runs: int = 0
    """Number of started agent runs."""

    @property
    def model(self) -> ClaudeCodeModel:
        """A model on this case's processes, with the mark in each request."""
        settings = ClaudeCodeModelSettings(anthropic_metadata={"user_id": self.mark})
        if self.random.random() < 0.5:  # without a header, an earlier request's header could stay
            settings["extra_headers"] = {MARK_HEADER: self.mark}
        return ClaudeCodeModel(self.random.choice(_MODELS), provider=self.provider, settings=settings)

    async def ask(self, agent: Agent[object, Any], prompt: str | None, **options: Any) -> AgentRunResult[Any]:
        options["instructions"] = f"You look for {self.mark}."
        if self.random.random() < _BROKEN_OFF_SHARE:
            self.runs += 1
            broken_off = asyncio.ensure_future(agent.run(prompt, **options))
            await ended_within(broken_off, self.random.uniform(0, _BROKEN_OFF_WITHIN))
        self.runs += 1
        result = await agent.run(prompt, **options)
        if self.random.random() < _REPEATED_SHARE:
            self.runs += 1
            self.check(str((await agent.run(prompt, **options)).output))
        return result

    async def ask_to_find(self, agent: Agent[object, Any]) -> None:
        """Ask for the mark, and check that the answer has the tool's result."""
        self.check((await self.ask(agent, f"Find {self.mark}.")).output, has_looked=True)

    async def read_to_the_end(self, agent: Agent[object, Any]) -> None:
        """Do the same with a stream."""
        self.runs += 1
        async with agent.run_stream(f"Find {self.mark}.", instructions=f"You look for {self.mark}.") as stream:
            pieces = [piece async for piece in stream.stream_text(debounce_by=None)]
        self.check(pieces[-1], has_looked=True)

    def check(self, answer: str, *, has_looked: bool = False) -> None:
        """Check that an answer belongs to this case.

        Raises:
            ToolFailedError: The tool could not be called.
            WrongAnswerError: It is another answer, or none.
        """
        if {*MARK.findall(answer)} != {self.mark}:
            raise WrongAnswerError(f"{self.mark} got {answer[:300]!r}")
        if FAILED in answer:
            raise ToolFailedError(answer[:300])
        if has_looked and f"saw {self.mark}" not in answer:
            raise WrongAnswerError(f"{self.mark} does not contain the result of its tool: {answer[:300]!r}")


Kind = Callable[[Case], Coroutine[Any, Any, None]]


async def look(mark: str) -> str:
    """Look."""
    await asyncio.sleep(_LOOK_SECONDS)
    return f"saw {mark}"


async def text(case: Case) -> None:
    """A text, and a second run with the history, on other processes."""
    first = await case.ask(Agent(case.model), f"Find {case.mark}.")
    case.check(first.output)
    other = replace(case, provider=case.other)
    again = await case.ask(Agent(other.model), f"Once more {case.mark}.", message_history=first.all_messages())
    case.check(again.output)


async def tool(case: Case) -> None:
    """A tool in the agent's loop."""
    await case.ask_to_find(Agent(case.model, tools=[look]))


async def structured(case: Case) -> None:
    """An output by the API's format, and another by a tool."""
    for output_type in (NativeOutput(MarkOutput), ToolOutput(MarkOutput)):
        result = await case.ask(Agent(case.model, output_type=output_type), f"Find {case.mark}.")
        case.check(result.output.mark)


async def streamed(case: Case) -> None:
    """A stream with a tool, read to the end."""
    await case.read_to_the_end(Agent(case.model, tools=[look]))


async def leave(case: Case) -> None:
    """A stream that is left early, and a run after it."""
    case.runs += 1
    agent = Agent(case.model)
    async with agent.run_stream(f"Leave {case.mark}.", instructions=f"You look for {case.mark}.") as stream:
        async for _ in stream.stream_text(debounce_by=None):
            break
    case.check((await case.ask(Agent(case.model), f"Find {case.mark}.")).output)


async def cancelled(case: Case) -> None:
    """A run that is cancelled at a random moment, and another after it."""
    await cancel_soon(Agent(case.model, tools=[look]), case)
    case.check((await case.ask(Agent(case.model), f"Find {case.mark}.")).output)


async def approved(case: Case) -> None:
    """A run that stops for an approval and continues from the serialized history, on other processes."""
    tools = [Tool[object](look, requires_approval=True)]
    agent: Agent[object, Any] = Agent(case.model, output_type=[str, DeferredToolRequests], tools=tools)
    first = await case.ask(agent, f"Find {case.mark}.")
    history = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(first.all_messages()))
    await asyncio.sleep(case.random.uniform(0, _CANCEL_WITHIN))
    granted = DeferredToolResults(approvals={call.tool_call_id: True for call in first.output.approvals})
    model = replace(case, provider=case.other).model
    second = await case.ask(agent, None, message_history=history, deferred_tool_results=granted, model=model)
    case.check(second.output, has_looked=True)


async def cli_loop(case: Case) -> None:
    """A tool in the CLI's own loop."""
    await case.ask_to_find(_handed_over(case, "sdk"))


async def cli_bridge(case: Case) -> None:
    """The same over a bridge process, streamed or not."""
    ask = case.ask_to_find if case.random.random() < 0.5 else case.read_to_the_end
    await ask(_handed_over(case, "stdio"))


async def cli_cancelled(case: Case) -> None:
    """The CLI's own loop, cancelled at a random moment, and a loop after it."""
    agent = _handed_over(case, case.random.choice(("sdk", "stdio")))
    await cancel_soon(agent, case)
    await case.ask_to_find(agent)


@dataclass(unsafe_hash=True)
class Answerer:
    """A callback with state that is equal to every other case's."""

    texts: list[str] = field(default_factory=list[str], compare=False)

    async def __call__(self, question: Question) -> JsonValue:
        self.texts.append(question.text)
        return {question.text: question.text}


async def cli_asked(case: Case) -> None:
    """A question to this case's callback, beside a tool with the case's text; at times after a cancel."""
    answerer = Answerer()
    own_look = sdk_tool(LOOK, f"Look for {case.mark}.", {"mark": str})(_look_in_the_server)
    servers = {"own": create_sdk_mcp_server("own", tools=[own_look])}
    tools = claude_code(tools=[ASK], questions=Questions(answerer), mcp_servers=servers)
    agent: Agent[object, Any] = Agent(case.model, capabilities=[tools])
    if case.random.random() < _ASKED_AFTER_A_CANCEL_SHARE:
        await cancel_soon(agent, case)
    case.check((await case.ask(agent, f"Find {case.mark}.")).output)
    if {*MARK.findall(str(answerer.texts))} != {case.mark}:
        raise WrongAnswerError(f"{case.mark}'s callback was asked {answerer.texts!r}")


async def _look_in_the_server(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": await look(arguments["mark"])}]}


async def cancel_soon(agent: Agent[object, Any], case: Case) -> None:
    task = asyncio.create_task(case.ask(agent, f"Cancel {case.mark}."))
    await ended_within(task, case.random.uniform(0, _CANCEL_WITHIN))


async def ended_within(task: asyncio.Future[Any], seconds: float) -> None:
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # retrieved: an error before the cancellation does not matter


def _handed_over(case: Case, transport: Transport) -> Agent[object, Any]:
    model = case.model
    agent: Agent[object, Any] = Agent(model, tools=[look])
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    return agent


def by_name(*kinds: Kind) -> dict[str, Kind]:
    return {kind.__name__.replace("_", "-"): kind for kind in kinds}


LIGHT = by_name(
    text, tool, structured, streamed, leave, cancelled, approved, cli_loop, cli_bridge, cli_cancelled, cli_asked
)
"""Cases that run all the time."""


async def slow(case: Case) -> None:
    """An answer that takes seconds to begin."""
    case.check((await case.ask(Agent(case.model), f"Find {case.mark} {SLOWLY}.")).output)


async def huge(case: Case) -> None:
    """An answer with ten million characters."""
    output = (await case.ask(Agent(case.model), f"Find {case.mark} {HUGELY}.")).output
    if len(output) < HUGE_CHARACTERS:
        raise WrongAnswerError(f"{case.mark} got {len(output)} characters of {HUGE_CHARACTERS}")
    case.check(output)


async def many_tools(case: Case) -> None:
    """A thousand tools; the model calls a single tool."""

    async def other(mark: str, words: list[str], limit: int = 10) -> str:
        """Never called."""
        return f"{mark} {words} {limit}"

    names = [f"tool_{number}" for number in range(_TOOLS - 1)]
    tools: list[Tool[object]] = [Tool(look), *(Tool(other, name=name) for name in names)]
    await case.ask_to_find(Agent(case.model, tools=tools))


async def long_history(case: Case) -> None:
    """A prompt after a conversation with a hundred thousand tokens."""
    size = _HISTORY_CHARACTERS // _HISTORY_MESSAGES
    text = (f"{case.mark} " + "and so on " * (size // 10))[:size]
    exchange = [ModelRequest([UserPromptPart(text)]), ModelResponse([TextPart(text)])]
    history = exchange * (_HISTORY_MESSAGES // 2)
    case.check((await case.ask(Agent(case.model), f"Find {case.mark}.", message_history=history)).output)


HEAVY = by_name(slow, huge, many_tools, long_history)
"""Cases that run occasionally."""
