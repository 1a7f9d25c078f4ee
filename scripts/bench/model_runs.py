"""What a run of an agent costs through Claude Code, each figure beside what it is made of, measured in the same run.

    python scripts/bench/model_runs.py

A warm run in a conversation, beside a bare turn of the SDK's client on a live process and a run with pydantic-ai's own
`AnthropicModel`, which it replaces both. A run with one tool call, beside two such turns and such a run. Independent
runs of one agent, beside `claude_agent_sdk.query()` for each of them. The bytes that the API receives, beside those of
`AnthropicModel`. All talk to the loopback API, which answers at once.

Prints medians, and the medians of the ratios of neighbours; exits with 1 if a bound is missed.
"""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from anthropic import AsyncAnthropic
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, query
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from cc_session import sealed_options

MODEL = "claude-sonnet-5"
CONVERSATIONS = 12
TURNS = 12
WARM_UP_TURNS = 2
INDEPENDENT = 60
QUERIES = 10

MOST_TIMES_PARTS = 1.0
MOST_TIMES_TOOL_PARTS = 1.1
LEAST_TIMES_FASTER_THAN_QUERY = 8.0
MOST_TIMES_BYTES, MORE_BYTES = 1.1, 600

missed: list[str] = []


def respond(body: dict[str, Any]) -> Any:
    """Call the tool if there is one that was not called yet, and else say hello."""
    if body.get("tools") and body["messages"][-1]["content"][-1]["type"] != "tool_result":
        return [{"type": "tool_use", "name": "look_up", "input": {"word": "hello"}}]
    return "Hello."


def look_up(word: str) -> str:
    """Look up a word."""
    return f"{word} is a greeting"


class Conversation:
    """Runs of an agent, each on the history of those before."""

    def __init__(self, model: AnthropicModel, *, has_tool: bool) -> None:
        self._agent = Agent(model, tools=[look_up] if has_tool else [])
        self._history: list[ModelMessage] = []

    async def turn(self) -> None:
        """Make a run."""
        result = await self._agent.run("Hello?", message_history=self._history)
        self._history = result.all_messages()


async def bare_turn(client: ClaudeSDKClient) -> None:
    """Make a turn of the SDK's client."""
    await client.query("Hello?")
    async for message in client.receive_response():
        if isinstance(message, ResultMessage) and message.result != "Hello.":
            raise RuntimeError(f"not the answer: {message}")


@asynccontextmanager
async def bare_client(options: ClaudeAgentOptions) -> AsyncGenerator[ClaudeSDKClient]:
    """Give a client on a process of its own."""
    client = ClaudeSDKClient(options)
    await client.connect()
    try:
        yield client
    finally:
        await client.disconnect()


async def seconds(action: Callable[[], Awaitable[object]]) -> float:
    """Return how long it takes."""
    begun = time.perf_counter()
    await action()
    return time.perf_counter() - begun


async def compare_runs(
    options: ClaudeAgentOptions, plain: AnthropicModel, ours: ClaudeCodeModel, *, has_tool: bool
) -> None:
    """Compare runs with what they are made of: API calls by Claude Code, and the framework's part."""
    turns = 2 if has_tool else 1
    taken: list[tuple[float, float, float]] = []
    for _ in range(CONVERSATIONS):
        first, second = (Conversation(model, has_tool=has_tool) for model in (plain, ours))
        async with bare_client(options) as client:
            for number in range(WARM_UP_TURNS + TURNS):
                bare = sum([await seconds(lambda: bare_turn(client)) for _ in range(turns)])
                times = (bare, await seconds(first.turn), await seconds(second.turn))
                if number >= WARM_UP_TURNS:
                    taken.append(times)
    bare, framework, mine = (statistics.median(times) * 1_000 for times in zip(*taken, strict=True))
    ratio = statistics.median(mine / (bare + framework) for bare, framework, mine in taken)
    print(f"A warm run with {'one tool call' if has_tool else 'no tools'}, p50")
    print(f"  {turns} bare turn(s) of the SDK's client {bare:31.2f} ms")
    print(f"  run with AnthropicModel {framework:43.2f} ms")
    print(f"  run with ClaudeCodeModel {mine:42.2f} ms")
    name = "run with a tool call / its parts" if has_tool else "run / its parts"
    bound(name, ratio, MOST_TIMES_TOOL_PARTS if has_tool else MOST_TIMES_PARTS)


async def compare_with_query(options: ClaudeAgentOptions, ours: ClaudeCodeModel) -> None:
    """Compare independent runs of one agent with the SDK's query(), which starts a process each time."""
    agent = Agent(ours)

    async def one_query() -> None:
        async for message in query(prompt="Hello?", options=options):
            if isinstance(message, ResultMessage) and message.result != "Hello.":
                raise RuntimeError(f"not the answer: {message}")

    runs: list[float] = []
    queries: list[float] = []
    for number in range(INDEPENDENT):
        runs.append(await seconds(lambda: agent.run("Hello?")))
        if number % (INDEPENDENT // QUERIES) == 0:
            queries.append(await seconds(one_query))
    run, sdk = statistics.median(runs[2:]) * 1_000, statistics.median(queries) * 1_000
    print("Independent runs, p50")
    print(f"  claude_agent_sdk.query() {sdk:42.2f} ms")
    print(f"  agent.run() {run:55.2f} ms")
    bound("query() / run", sdk / run, LEAST_TIMES_FASTER_THAN_QUERY, least=True)


async def compare_bytes(api: LoopbackServer, plain: AnthropicModel, ours: ClaudeCodeModel) -> None:
    """Compare the sizes of what the API receives for text runs."""
    print("Bytes of a request for a text run")
    for name, prompt in {"short": "Hello?", "20 KB": "Hello? " * 3_000}.items():
        sizes: list[int] = []
        for model in (plain, ours):
            await Agent(model).run(prompt)
            sizes.append(len(api.calls[-1].raw))
        direct, through = sizes
        print(f"  {name}: AnthropicModel {direct}, ClaudeCodeModel {through}")
        bound(f"{name}: bytes", through, MOST_TIMES_BYTES * direct + MORE_BYTES)


def bound(name: str, value: float, limit: float, *, least: bool = False) -> None:
    """Print a figure beside its bound, and remember it if it misses that."""
    kept = value >= limit if least else value <= limit
    print(f"  {name:44} {value:12.3f}      {'at least' if least else 'at most'} {limit:g}{'' if kept else '   MISSED'}")
    if not kept:
        missed.append(name)


async def main() -> int:
    """Measure everything, and return the exit status."""
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n")
    with LoopbackServer(respond) as api:
        # Who needs no events does not ask for them, which is the cheapest turn there is.
        options = replace(sealed_options(model=MODEL, env=api.env()), include_partial_messages=False)
        async with (
            AsyncAnthropic(api_key="key", base_url=api.url, max_retries=0) as client,
            ClaudeCodeProvider(env=api.env(), pool=1, max_retries=0) as provider,
        ):
            plain = AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))
            ours = ClaudeCodeModel(MODEL, provider=provider)
            await compare_runs(options, plain, ours, has_tool=False)
            await compare_runs(options, plain, ours, has_tool=True)
            await compare_with_query(options, ours)
            await compare_bytes(api, plain, ours)
    if missed:
        print(f"\nMissed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
