"""Cases for an agent, the API's answers, and a function that runs a case: equal for all engines, and for none.

With an engine's capability in the agent, a case must have the same result as without.
"""

import json
import os
import time
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    AgentStreamEvent,
    BinaryContent,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    UserContent,
)
from pydantic_ai.agent import AbstractAgent, EventStreamHandler
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.anthropic import AnthropicModelSettings
from pydantic_core import to_jsonable_python

from cc_model import ClaudeCodeModel, ClaudeCodeProvider, claude_code

Body: TypeAlias = dict[str, Any]
CaseAgent: TypeAlias = Agent[str, Any]

# The engine retries failures.
PROVIDER = ClaudeCodeProvider(pool=2, max_retries=0)
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


class City(BaseModel):
    """A place."""

    name: str
    people: int


@dataclass(frozen=True)
class Case:
    """An agent's prompt, and the API's answers, a reply for each round."""

    name: str
    replies: tuple[Any, ...]
    add_tools: Callable[[CaseAgent], object] = lambda agent: None
    prompt: str | tuple[UserContent, ...] = "Go."
    output_type: Any = str
    thinking: bool = False
    by_id: bool = False
    """True if the agent has the model's id instead of the model."""


def make_agent(case: Case, *capabilities: AbstractCapability[str], suffix: str = "") -> CaseAgent:
    """Return a case's agent, with the case's name and instructions."""
    settings = AnthropicModelSettings(anthropic_thinking={"type": "adaptive"})
    agent: CaseAgent = Agent(
        "claude-code:claude-sonnet-5" if case.by_id else ClaudeCodeModel(provider=PROVIDER),
        name=f"{case.name}{suffix}",
        deps_type=str,
        instructions=case.name,
        output_type=case.output_type,
        model_settings=settings if case.thinking else None,
        capabilities=[claude_code(provider=PROVIDER), *capabilities],
    )
    case.add_tools(agent)
    return agent


async def run_case(agent: AbstractAgent[str, Any], case: Case, handler: EventStreamHandler[str] | None = None) -> Any:
    """Run a case; return messages, output and usage, or the API error that ended the case, as JSON."""
    prompt = case.prompt if isinstance(case.prompt, str) else [*case.prompt]
    try:
        result = await agent.run(prompt, deps="sunny", event_stream_handler=handler)
        if isinstance(result.output, DeferredToolRequests):
            results = DeferredToolResults(calls={call.tool_call_id: "from outside" for call in result.output.calls})
            result = await agent.run(
                message_history=result.all_messages(),
                deferred_tool_results=results,
                deps="sunny",
                event_stream_handler=handler,
            )
    except ModelHTTPError as error:
        return {"error": type(error).__name__, "status": error.status_code, "message": str(error)}
    return {
        "output": to_jsonable_python(result.output),
        "messages": json.loads(result.all_messages_json()),
        "tokens": [result.usage.requests, result.usage.input_tokens, result.usage.output_tokens],
    }


def recorder(name: str) -> EventStreamHandler[str]:
    """Return a handler that appends each event to the file in `EVENTS`."""

    async def record(_context: RunContext[str], events: AsyncIterable[AgentStreamEvent]) -> None:
        async for event in events:
            _note({"name": name, "kind": event.event_kind, "time": time.time()})

    return record


def _note(event: dict[str, object]) -> None:
    with Path(os.environ["EVENTS"]).open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(event)}\n")


def respond(body: Body) -> Any:
    """Answer a request of any case; the last system block names the case."""
    case = CASES[body["system"][-1]["text"].splitlines()[-1]]
    reply = case.replies[sum(message["role"] == "assistant" for message in body["messages"])]
    usage = {"input_tokens": 100, "output_tokens": 20}
    return {"content": [{"type": "text", "text": reply}] if isinstance(reply, str) else reply, "usage": usage}


def _call(tool: str, /, **arguments: object) -> dict[str, object]:
    return {"type": "tool_use", "name": tool, "input": arguments}


def _weather(agent: CaseAgent) -> None:
    @agent.tool
    async def weather(ctx: RunContext[str], city: str) -> str:  # pyright: ignore[reportUnusedFunction]  # the agent's
        """The weather in a city."""
        return f"{ctx.deps} in {city}"


def _twice(agent: CaseAgent) -> None:
    @agent.tool(retries=2)
    async def guess(ctx: RunContext[str], number: int) -> str:  # pyright: ignore[reportUnusedFunction]  # the agent's
        """Guess a number."""
        if ctx.retry == 0:
            raise ModelRetry("Higher.")
        return f"{number} is right"


def _outside(agent: CaseAgent) -> None:
    @agent.tool
    async def ask_outside(ctx: RunContext[str]) -> str:  # pyright: ignore[reportUnusedFunction]  # the agent's
        """Ask another system."""
        raise CallDeferred


_THOUGHT = {"type": "thinking", "thinking": "A city.", "signature": "c2lnbmVk"}
_PARALLEL = ([{"type": "text", "text": "Let me see."}, _call("weather", city="Rome"), _call("weather", city="Oslo")],)
_IMAGE = (BinaryContent(PIXEL, media_type="image/png"), "What is this?")

CASES = {
    case.name: case
    for case in (
        Case("refused", ()),  # the first case, since the test lets the first requests fail
        Case("text", ("word " * 300,)),
        Case("by-id", ("Hello.",), by_id=True),
        Case("parallel-tools", (*_PARALLEL, "Fine."), _weather),
        Case("tool-retry", ([_call("guess", number=1)], [_call("guess", number=2)], "Two."), _twice),
        Case("native-output", ('{"name": "Rome", "people": 3}',), output_type=City),
        Case("thinking", ([_THOUGHT, _call("weather", city="Rome")], "Fine."), _weather, thinking=True),
        Case("image", ("A pixel.",), prompt=_IMAGE),
        Case("deferred", ([_call("ask_outside")], "They say yes."), _outside, output_type=[str, DeferredToolRequests]),
    )
}
