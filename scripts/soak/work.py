"""Kinds of runs: what an agent is asked, and what its answer must have.

A run gets its mark into its prompts and looks at all that comes back: a mark of another run, or none, is wrong.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, NativeOutput, ToolOutput
from pydantic_ai.messages import ModelMessagesTypeAdapter

from cc_model import ClaudeCodeModel, ClaudeCodeProvider

from .answers import FAILED, MARK

Transport = Literal["sdk", "stdio"]

# How long a tool takes, so that others can come between; seconds.
_LOOK_SECONDS = 0.01
# A run is cancelled within this time, which is about as long as one takes; seconds.
_CANCEL_WITHIN = 0.3


class WrongAnswerError(Exception):
    """An answer that is not the one to this run."""


class ToolFailedError(Exception):
    """The tool of a run could not be called."""


class Found(BaseModel):
    """What was found."""

    mark: str


@dataclass(frozen=True)
class Run:
    """One run: its mark, where it runs, and its own chances."""

    mark: str
    provider: ClaudeCodeProvider
    other: ClaudeCodeProvider
    """Where it may go on, as if on another machine."""
    random: Random

    @property
    def model(self) -> ClaudeCodeModel:
        """A model on the processes of this run."""
        return ClaudeCodeModel(provider=self.provider)

    def check(self, answer: str, *, has_looked: bool = False) -> None:
        """See that an answer is that of this run.

        Raises:
            ToolFailedError: The tool could not be called.
            WrongAnswerError: It is another one, or none.
        """
        if {*MARK.findall(answer)} != {self.mark}:
            raise WrongAnswerError(f"{self.mark} got {answer[:300]!r}")
        if FAILED in answer:
            raise ToolFailedError(answer[:300])
        if has_looked and f"saw {self.mark}" not in answer:
            raise WrongAnswerError(f"{self.mark} has not seen what its tool said: {answer[:300]!r}")


Kind = Callable[[Run], Coroutine[Any, Any, None]]


def looking(model: ClaudeCodeModel, **options: Any) -> Agent[object, Any]:
    """Return an agent with a tool."""
    agent: Agent[object, Any] = Agent(model, **options)

    @agent.tool_plain
    async def look(mark: str) -> str:
        """Look."""
        await asyncio.sleep(_LOOK_SECONDS)
        return f"saw {mark}"

    return agent


async def text(run: Run) -> None:
    """A text, and one more with the history, on other processes."""
    first = await Agent(run.model).run(f"Find {run.mark}.")
    run.check(first.output)
    model = ClaudeCodeModel(provider=run.other)
    run.check((await Agent(model).run(f"Once more {run.mark}.", message_history=first.all_messages())).output)


async def tool(run: Run) -> None:
    """A tool in the agent's loop."""
    run.check((await looking(run.model).run(f"Find {run.mark}.")).output, has_looked=True)


async def structured(run: Run) -> None:
    """An output by the API's format, and one by a tool."""
    run.check((await Agent(run.model, output_type=NativeOutput(Found)).run(f"Find {run.mark}.")).output.mark)
    run.check((await Agent(run.model, output_type=ToolOutput(Found)).run(f"Find {run.mark}.")).output.mark)


async def streamed(run: Run) -> None:
    """A stream with a tool, read to its end."""
    async with looking(run.model).run_stream(f"Find {run.mark}.") as stream:
        pieces = [piece async for piece in stream.stream_text(debounce_by=None)]
    run.check(pieces[-1], has_looked=True)


async def left(run: Run) -> None:
    """A stream that is left, and a run after it."""
    async with Agent(run.model).run_stream(f"Leave {run.mark}.") as stream:
        async for _ in stream.stream_text(debounce_by=None):
            break
    run.check((await Agent(run.model).run(f"Find {run.mark}.")).output)


async def cancelled(run: Run) -> None:
    """A run that is cancelled at some moment, and one after it."""
    await cancel_soon(looking(run.model), run)
    run.check((await Agent(run.model).run(f"Find {run.mark}.")).output)


async def approved(run: Run) -> None:
    """A run that stops at an approval and goes on from its written history, on other processes."""
    agent: Agent[object, Any] = Agent(run.model, output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    async def look(mark: str) -> str:
        """Look."""
        return f"saw {mark}"

    first = await agent.run(f"Find {run.mark}.")
    history = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(first.all_messages()))
    await asyncio.sleep(run.random.uniform(0, _CANCEL_WITHIN))
    granted = DeferredToolResults(approvals={call.tool_call_id: True for call in first.output.approvals})
    model = ClaudeCodeModel(provider=run.other)
    second = await agent.run(message_history=history, deferred_tool_results=granted, model=model)
    run.check(second.output, has_looked=True)


async def cli_loop(run: Run) -> None:
    """A tool in the CLI's own loop."""
    run.check((await _handed_over(run, "sdk").run(f"Find {run.mark}.")).output, has_looked=True)


async def cli_bridge(run: Run) -> None:
    """The same over a bridge process, streamed or not."""
    agent = _handed_over(run, "stdio")
    if run.random.random() < 0.5:
        run.check((await agent.run(f"Find {run.mark}.")).output, has_looked=True)
        return
    async with agent.run_stream(f"Find {run.mark}.") as stream:
        pieces = [piece async for piece in stream.stream_text(debounce_by=None)]
    run.check(pieces[-1], has_looked=True)


async def cli_cancelled(run: Run) -> None:
    """The CLI's own loop, cancelled at some moment, and a loop after it."""
    agent = _handed_over(run, run.random.choice(("sdk", "stdio")))
    await cancel_soon(agent, run)
    run.check((await agent.run(f"Find {run.mark}.")).output, has_looked=True)


async def cancel_soon(agent: Agent[object, Any], run: Run) -> None:
    """Begin a run and cancel it."""
    task = asyncio.create_task(agent.run(f"Cancel {run.mark}."))
    try:
        await asyncio.wait({task}, timeout=run.random.uniform(0, _CANCEL_WITHIN))
    finally:
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # looked at; what has failed before it was cancelled is nobody's


def _handed_over(run: Run, transport: Transport) -> Agent[object, Any]:
    model = run.model
    agent = looking(model)
    model.set_agent_toolsets(agent.toolsets, transport=transport)
    return agent


LIGHT: dict[str, Kind] = {
    "text": text,
    "tool": tool,
    "structured": structured,
    "streamed": streamed,
    "left": left,
    "cancelled": cancelled,
    "approved": approved,
    "cli-loop": cli_loop,
    "cli-bridge": cli_bridge,
    "cli-cancelled": cli_cancelled,
}
"""What runs all the time."""
