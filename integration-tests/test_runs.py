"""Every way to run an agent works, alone and many at once, and leaves nothing behind."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResultEvent, PartDeltaEvent, TextPartDelta, ToolOutput

from api_script import echo
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider, claude_code
from processes import at_rest, eventually, processes

SLOW = 0.02  # seconds between two events of a stream, so that it can be left in the middle


class City(BaseModel):
    name: str


async def test_run_answers(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    loopback.respond = echo
    assert (await Agent(model).run("one")).output == "You said: one"


def test_run_sync_answers_twice_and_from_two_threads(loopback: LoopbackServer) -> None:
    """MODEL-64"""
    loopback.respond = echo
    provider = ClaudeCodeProvider(env=loopback.env())
    agent = Agent(ClaudeCodeModel(provider=provider))

    def run_sync(*prompts: str) -> list[str]:
        # `run_sync()` leaves a loop of its own open, and pytest would complain about it.
        with asyncio.Runner() as runner:
            asyncio.set_event_loop(runner.get_loop())
            return [agent.run_sync(prompt).output for prompt in prompts]

    assert run_sync("one", "two") == ["You said: one", "You said: two"]
    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(run_sync, ("three", "four"))] == [["You said: three"], ["You said: four"]]

    asyncio.run(provider.aclose())


def test_one_provider_serves_three_event_loops_in_a_row_with_one_process(loopback: LoopbackServer) -> None:
    """MODEL-64"""
    provider = ClaudeCodeProvider(env=loopback.env())
    agent = Agent(ClaudeCodeModel(provider=provider))

    async def run() -> None:
        await agent.run("Hello.")

    for _ in range(3):
        asyncio.run(run())

    assert len(provider.transport.pids) == 1
    asyncio.run(provider.aclose())


async def test_run_stream_yields_text_before_the_answer_is_complete() -> None:
    """MODEL-43"""
    with LoopbackServer(lambda body: "word " * 400, event_delay=SLOW) as api:
        async with ClaudeCodeProvider(env=api.env(), max_retries=0) as provider:
            async with Agent(ClaudeCodeModel(provider=provider)).run_stream("Hello.") as stream:
                async for piece in stream.stream_text(delta=True, debounce_by=None):
                    assert len(piece) < len("word " * 400)
                    assert not stream.is_complete
                    break


async def test_run_stream_events_yields_deltas_and_the_result(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    """MODEL-42"""
    loopback.respond = echo
    async with Agent(model).run_stream_events("Hello.") as stream:
        events = [event async for event in stream]
    assert any(isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta) for event in events)
    assert isinstance(events[-1], AgentRunResultEvent)
    assert events[-1].result.output == "You said: Hello."


async def test_iter_walks_through_the_nodes_of_a_run(loopback: LoopbackServer, model: ClaudeCodeModel) -> None:
    loopback.respond = echo
    async with Agent(model).iter("Hello.") as run:
        nodes = [type(node).__name__ async for node in run]
    assert nodes == ["UserPromptNode", "ModelRequestNode", "CallToolsNode", "End"]


async def test_a_model_id_resolves_through_the_capability(
    loopback: LoopbackServer, provider: ClaudeCodeProvider
) -> None:
    """MODEL-68, MODEL-70"""
    agent = Agent("claude-code:sonnet", capabilities=[claude_code(provider=provider)])
    result = await agent.run("Hello.")
    assert result.response.model_name == loopback.requests[0]["model"]


async def test_twenty_concurrent_runs_each_get_their_own_answer(loopback: LoopbackServer) -> None:
    """MODEL-65: by far fewer processes."""

    def respond(body: dict[str, Any]) -> Any:
        last = body["messages"][-1]["content"]
        if last[-1]["type"] == "tool_result":
            return "Your " + last[-1]["content"][0]["text"]
        return [{"type": "tool_use", "name": "number", "input": {"of": last[-1]["text"]}}]

    async def number(of: str) -> str:
        """A number."""
        await anyio.sleep(0.01)
        return f"number of {of}"

    loopback.respond = respond
    async with ClaudeCodeProvider(env=loopback.env(), pool=3, max_retries=0) as provider:
        agent = Agent(ClaudeCodeModel(provider=provider), tools=[number])
        results = await asyncio.gather(*(agent.run(f"run {index}") for index in range(20)))

    assert [result.output for result in results] == [f"Your number of run {index}" for index in range(20)]
    assert len(loopback.requests) == 40


async def test_a_tool_may_run_an_agent_on_the_same_model_with_a_single_process(loopback: LoopbackServer) -> None:
    """MODEL-65"""
    async with ClaudeCodeProvider(env=loopback.env(), pool=1) as provider:
        model = ClaudeCodeModel(provider=provider)
        helper = Agent(model)
        agent = Agent(model)

        @agent.tool_plain
        async def ask_helper(question: str) -> str:
            """Ask a helper."""
            return (await helper.run(question)).output

        result = await agent.run("Ask the helper.")
    assert "ask_helper returned" in result.output


async def test_leaving_a_stream_early_ends_the_turn_and_keeps_the_process() -> None:
    """MODEL-45"""
    with LoopbackServer(lambda body: "word " * 400, event_delay=SLOW) as api:
        async with ClaudeCodeProvider(env=api.env(), max_retries=0) as provider:
            agent = Agent(ClaudeCodeModel(provider=provider))
            async with agent.run_stream("Hello.") as stream:
                async for _ in stream.stream_text(debounce_by=None):
                    break
            [pid] = await at_rest(provider)

            api.respond = echo
            assert (await agent.run("Next.")).output == "You said: Next."
            assert provider.transport.pids == [pid]
            assert [message["role"] for message in api.requests[-1]["messages"]] == ["user"]


async def test_a_cancelled_run_ends_the_turn_and_keeps_the_process() -> None:
    """MODEL-45"""
    with LoopbackServer(lambda body: "word " * 400, event_delay=SLOW) as api:
        async with ClaudeCodeProvider(env=api.env(), max_retries=0) as provider:
            agent = Agent(ClaudeCodeModel(provider=provider))
            task = asyncio.create_task(agent.run("Hello."))
            await eventually(lambda: bool(api.requests))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            [pid] = await at_rest(provider)

            api.respond = echo
            assert (await agent.run("Next.")).output == "You said: Next."
            assert provider.transport.pids == [pid]


async def test_a_run_that_ends_on_an_output_tool_leaves_an_idle_process_and_no_call(
    loopback: LoopbackServer, model: ClaudeCodeModel, provider: ClaudeCodeProvider
) -> None:
    """MODEL-33"""
    agent = Agent(model, output_type=ToolOutput(City))
    await agent.run("A city.")
    await at_rest(provider)
    assert processes() >= {*provider.transport.pids}
    assert len(provider.transport.pids) == 1

    await agent.run("Another one.")
    await at_rest(provider)
    assert len(provider.transport.pids) == 1


async def test_leaving_an_agent_ends_its_processes(loopback: LoopbackServer) -> None:
    """MODEL-63"""
    provider = ClaudeCodeProvider(env=loopback.env())
    agent = Agent(ClaudeCodeModel(provider=provider))
    async with agent:
        await agent.run("Hello.")
        assert provider.transport.pids
    assert not provider.transport.pids
    await eventually(lambda: not processes())
