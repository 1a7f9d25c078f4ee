"""Every way to run an agent works, alone and many at once, without leaks."""

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext

from api_script import call, echo, steps
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from processes import at_rest, eventually

MANY_WORDS = "word " * 400
# Only a hang reaches this bound on waiting for an event.
_NOT_FOR_EVER = 20.0


class City(BaseModel):
    name: str


def look(context: RunContext[City]) -> str:
    return context.deps.name


def test_run_sync_answers_twice_and_from_two_threads(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-64, ARCH-17, ARCH-19"""
    loopback.respond = echo
    agent = Agent(model)

    def run_sync(*prompts: str) -> list[str]:
        # `run_sync()` leaves an event loop open, and pytest would complain.
        with asyncio.Runner() as runner:
            asyncio.set_event_loop(runner.get_loop())
            return [agent.run_sync(prompt).output for prompt in prompts]

    assert run_sync("one", "two") == ["You said: one", "You said: two"]
    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(run_sync, ("three", "four"))] == [["You said: three"], ["You said: four"]]


async def test_twenty_concurrent_runs_each_get_their_own_answer(
    loopback: LoopbackServer, model: ClaudeCodeModel
) -> None:
    """MODEL-65, ARCH-19: with far fewer processes; all runs are in their tool at once."""
    all_are_there = asyncio.Barrier(20)

    def respond(body: dict[str, Any]) -> Any:
        last = body["messages"][-1]["content"]
        if last[-1]["type"] == "tool_result":
            return "Your " + last[-1]["content"][0]["text"]
        return [{"type": "tool_use", "name": "number", "input": {"of": last[-1]["text"]}}]

    async def number(of: str) -> str:
        """A number."""
        await all_are_there.wait()
        return f"number of {of}"

    loopback.respond = respond
    agent = Agent(model, tools=[number])
    results = await asyncio.gather(*(agent.run(f"run {index}") for index in range(20)))

    assert [result.output for result in results] == [f"Your number of run {index}" for index in range(20)]
    assert len(loopback.requests) == 40


@pytest.mark.parametrize("is_cli_loop", [False, True], ids=["the agent's loop", "the CLI's loop"])
async def test_a_tool_may_run_an_agent_on_the_same_single_process(loopback: LoopbackServer, is_cli_loop: bool) -> None:
    """MODEL-65: in the CLI's loop a process waits for the tool."""
    async with ClaudeCodeProvider(env=loopback.env(), pool=1) as provider:
        model = ClaudeCodeModel(provider=provider)
        helper = Agent(ClaudeCodeModel(provider=provider))
        agent = Agent(model)

        @agent.tool_plain
        async def ask_helper(question: str) -> str:
            """Ask a helper."""
            return (await helper.run(question)).output

        if is_cli_loop:
            model.set_agent_toolsets(agent.toolsets)
        result = await agent.run("Ask the helper.")
    assert "ask_helper returned" in result.output


async def test_a_tool_that_blocks_its_event_loop_delays_no_other_run(
    loopback: LoopbackServer, single_provider: ClaudeCodeProvider
) -> None:
    """ARCH-18: a tool runs in the caller's thread, and the only process answers meanwhile."""
    entered, release = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []
    caller = threading.Thread(target=lambda: outputs.append(asyncio.run(agent.run("Block.")).output))
    outputs: list[str] = []

    async def block() -> str:
        """Block the event loop."""
        threads.append(threading.current_thread())
        entered.set()
        assert release.wait(_NOT_FOR_EVER)
        return "released"

    agent = Agent(ClaudeCodeModel(provider=single_provider), tools=[block])
    caller.start()
    try:
        assert await asyncio.to_thread(entered.wait, _NOT_FOR_EVER)
        async with Agent(ClaudeCodeModel(provider=single_provider)).run_stream("Hello.") as stream:
            assert await stream.get_output()
    finally:
        release.set()
        await asyncio.to_thread(caller.join)
    assert threads == [caller]
    assert "released" in outputs[0]


async def test_a_cancelled_run_ends_the_turn_and_keeps_the_process(
    slow_api: LoopbackServer, slow_provider: ClaudeCodeProvider
) -> None:
    """MODEL-45, ARCH-20: `test_processes.py` leaves streams early."""
    slow_api.respond = steps(MANY_WORDS)
    agent = Agent(ClaudeCodeModel(provider=slow_provider))
    task = asyncio.create_task(agent.run("Hello."))
    await eventually(lambda: bool(slow_api.requests))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    pids = await at_rest(slow_provider)

    slow_api.respond = echo
    assert (await agent.run("Next.")).output == "You said: Next."
    assert slow_provider.transport.pids == pids != []
    assert [message["role"] for message in slow_api.requests[-1]["messages"]] == ["user"]


@pytest.mark.parametrize("ending", ["finished", "in the CLI's loop", "cancelled"])
async def test_nothing_keeps_the_dependencies_of_an_ended_run(
    slow_api: LoopbackServer, slow_provider: ClaudeCodeProvider, ending: str
) -> None:
    """SES-93: neither a process, nor the timers of a loop that outlives the run."""
    model = ClaudeCodeModel(provider=slow_provider)
    agent = Agent(model, deps_type=City)
    agent.tool(look)
    name = "look"
    if ending == "in the CLI's loop":
        model.set_agent_toolsets(agent.toolsets, transport="stdio")
        name = "mcp__pydantic_tools__look"
    slow_api.respond = steps([call(name)], MANY_WORDS if ending == "cancelled" else "Done.")

    async def run() -> weakref.ref[City]:
        dependencies = City(name="Bern")
        running = asyncio.create_task(agent.run("Hello.", deps=dependencies))
        if ending == "cancelled":
            await eventually(lambda: len(slow_api.requests) == 2)
            running.cancel()
        await asyncio.wait({running})
        assert running.cancelled() == (ending == "cancelled")
        return weakref.ref(dependencies)

    dependencies = await asyncio.create_task(run())
    assert "Bern" in str(slow_api.requests[-1]["messages"][-1])  # the tool has run
    await at_rest(slow_provider)
    await eventually(lambda: gc.collect() >= 0 and dependencies() is None)
