"""Calls without an answer and streams without a reader leave no process, and the next run is normal."""

import asyncio
import pickle
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import psutil
import pytest
from pydantic_ai import Agent, CancellationToken, DeferredToolRequests, Tool
from pydantic_ai.capabilities import Hooks
from pydantic_ai.exceptions import (
    ModelConnectionError,
    RetryModelRequest,
    RunCancelled,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import UsageLimits

from api_script import call, echo, number, steps
from cc_loopback import LoopbackServer
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from processes import at_rest, eventually, processes

MANY_WORDS = "word " * 2_000
# Reading all pieces takes more than twice as long.
NOT_TO_THE_END = 20.0


def calls_for_ever(body: dict[str, Any]) -> Any:
    return [call("number")] if body["messages"][0]["content"][0]["text"] == "Call." else echo(body)


async def a_limit(model: ClaudeCodeModel) -> None:
    with pytest.raises(UsageLimitExceeded):
        await Agent(model, tools=[number]).run("Call.", usage_limits=UsageLimits(request_limit=2))


async def a_crash(model: ClaudeCodeModel) -> None:
    def number() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Agent(model, tools=[number]).run("Call.")


async def a_deferral(model: ClaudeCodeModel) -> None:
    agent = Agent(model, tools=[Tool(number, requires_approval=True)], output_type=[str, DeferredToolRequests])
    assert isinstance((await agent.run("Call.")).output, DeferredToolRequests)


async def a_request_that_is_sent_again(model: ClaudeCodeModel) -> None:
    responses: list[ModelResponse] = []

    async def once_more(ctx: object, *, request_context: object, response: ModelResponse) -> ModelResponse:
        responses.append(response)
        if len(responses) == 1:
            raise RetryModelRequest
        return response

    agent = Agent(model, tools=[number], capabilities=[Hooks(after_model_request=once_more)])
    with pytest.raises(UsageLimitExceeded):
        await agent.run("Call.", usage_limits=UsageLimits(request_limit=3))
    assert len(responses) == 4  # the first answer was discarded, and the request does not count


async def an_unknown_tool(model: ClaudeCodeModel) -> None:
    with pytest.raises(UnexpectedModelBehavior):
        await Agent(model, retries=0).run("Call.")


async def a_cancelled_task(model: ClaudeCodeModel) -> None:
    begun = asyncio.Event()

    async def number() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(Agent(model, tools=[number]).run("Call."))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def a_response_that_is_not_liked(model: ClaudeCodeModel) -> None:
    def calls(response: ModelResponse) -> bool:
        return bool(response.tool_calls)

    fallback = FallbackModel(model, TestModel(call_tools=[]), fallback_on=calls)
    assert (await Agent(fallback, tools=[number]).run("Call.")).output


@pytest.mark.parametrize(
    "leave",
    [
        a_limit,
        a_cancelled_task,
        *(
            pytest.param(leave, marks=pytest.mark.deaths)
            for leave in (
                a_crash,
                a_deferral,
                a_request_that_is_sent_again,
                an_unknown_tool,
                a_response_that_is_not_liked,
            )
        ),
    ],
)
async def test_a_call_without_an_answer_keeps_no_process(
    leave: Callable[[ClaudeCodeModel], Awaitable[None]], loopback: LoopbackServer, single_provider: ClaudeCodeProvider
) -> None:
    """MODEL-51, MODEL-55, MSG-72, SES-66: the single process serves the next run."""
    loopback.respond = calls_for_ever
    model = ClaudeCodeModel(provider=single_provider)
    await leave(model)
    [pid] = await at_rest(single_provider)

    assert (await Agent(model).run("Hello.")).output == "You said: Hello."
    assert await at_rest(single_provider) == [pid]


async def leave_run_stream(agent: Agent[object, str]) -> None:
    async with agent.run_stream("Hello.") as stream:
        async for _ in stream.stream_text(debounce_by=None):
            break


async def leave_text_that_is_debounced(agent: Agent[object, str]) -> None:
    async with agent.run_stream("Hello.") as stream:
        async for _ in stream.stream_text(debounce_by=0.02):
            break


async def leave_run_stream_events(agent: Agent[object, str]) -> None:
    async with agent.run_stream_events("Hello.") as stream:
        async for _ in stream:
            break


async def leave_iter(agent: Agent[object, str]) -> None:
    async with agent.iter("Hello.") as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for _ in stream:
                        break
                break


async def leave_run_stream_sync(agent: Agent[object, str]) -> None:
    def run() -> None:
        # `run_stream_sync()` leaves an event loop open, and pytest would complain.
        with asyncio.Runner() as runner:
            asyncio.set_event_loop(runner.get_loop())
            with agent.run_stream_sync("Hello.") as stream:
                for _ in stream.stream_text(debounce_by=None):
                    break

    await asyncio.to_thread(run)


async def cancel_a_stream(agent: Agent[object, str]) -> None:
    async with agent.run_stream("Hello.") as stream:
        async for _ in stream.stream_text(debounce_by=None):
            await stream.cancel()
    [_, response] = stream.all_messages()
    assert isinstance(response, ModelResponse)
    assert response.state == "interrupted"
    assert len(response.text or "") < len(MANY_WORDS)


async def cancel_a_run(agent: Agent[object, str]) -> None:
    token = CancellationToken()
    with pytest.raises(RunCancelled):
        async with agent.run_stream_events("Hello.", cancellation_token=token) as stream:
            async for _ in stream:
                token.cancel()


@pytest.mark.parametrize(
    "leave",
    [
        leave_run_stream,
        cancel_a_run,
        *(
            pytest.param(leave, marks=pytest.mark.deaths)
            for leave in (
                leave_text_that_is_debounced,
                leave_run_stream_events,
                leave_iter,
                leave_run_stream_sync,
                cancel_a_stream,
            )
        ),
    ],
)
async def test_leaving_a_stream_in_the_middle_ends_its_turn_and_nothing_else(
    leave: Callable[[Agent[object, str]], Awaitable[None]], slow_api: LoopbackServer, slow_provider: ClaudeCodeProvider
) -> None:
    """MODEL-44, MODEL-45, ARCH-20: with every streaming API the same processes remain."""
    agent = Agent(ClaudeCodeModel(provider=slow_provider))
    slow_api.respond = echo
    await agent.run("Warm up.")
    pids, before = await at_rest(slow_provider), processes()
    slow_api.respond = steps(MANY_WORDS)
    with anyio.fail_after(NOT_TO_THE_END):
        await leave(agent)
        assert await at_rest(slow_provider) == pids
    assert processes() == before

    slow_api.respond = echo
    assert (await agent.run("Next.")).output == "You said: Next."
    assert [message["role"] for message in slow_api.requests[-1]["messages"]] == ["user"]
    assert await at_rest(slow_provider) == pids


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_error_before_the_first_event_lets_a_fallback_take_over(
    streamed: bool, loopback: LoopbackServer, model: ClaudeCodeModel
) -> None:
    """MODEL-46, MODEL-50"""
    loopback.fail_next(529)
    agent = Agent(FallbackModel(model, TestModel(custom_output_text="from the other model")))
    if streamed:
        async with agent.run_stream("Hello.") as stream:
            output = await stream.get_output()
    else:
        output = (await agent.run("Hello.")).output
    assert output == "from the other model"


@pytest.mark.deaths
async def test_a_process_that_dies_in_a_run_fails_that_run_alone(loopback: LoopbackServer) -> None:
    """MODEL-49, MODEL-50, MODEL-51, MODEL-65: the error can be pickled."""
    may_answer = threading.Event()

    async def wait(body: dict[str, Any]) -> Any:
        await asyncio.to_thread(may_answer.wait, 10)
        return echo(body)

    loopback.respond = wait
    async with ClaudeCodeProvider(env=loopback.env(), pool=2, max_retries=0) as provider:
        agent = Agent(ClaudeCodeModel(provider=provider))
        prompts = ("One.", "Two.")
        runs = [asyncio.create_task(agent.run(prompt)) for prompt in prompts]
        await eventually(lambda: len(loopback.requests) == 2)
        psutil.Process(provider.transport.pids[0]).kill()
        await asyncio.wait(runs, return_when=asyncio.FIRST_COMPLETED)
        may_answer.set()
        results = await asyncio.gather(*runs, return_exceptions=True)
        loopback.respond = echo
        assert (await agent.run("Live.")).output == "You said: Live."
    [error] = [result for result in results if isinstance(result, BaseException)]
    assert isinstance(error, ModelConnectionError)
    assert "SIGKILL" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy)) == (type(error), str(error))
    [other] = [(prompt, result) for prompt, result in zip(prompts, results, strict=True) if result is not error]
    assert not isinstance(other[1], BaseException)
    assert other[1].output == f"You said: {other[0]}"
