"""Every wait has a limit: for a process, for the API, and for the next attempt. An error names the limit."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from typing import Any

import anyio
import httpx2
import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError, ModelHTTPError, ModelTimeoutError
from pydantic_ai.settings import ModelSettings

from cc_loopback import LoopbackServer, call
from cc_model import ClaudeCodeModel, ClaudeCodeProvider
from cc_server import create_app
from cc_session import QueueTimeoutError, Timeouts
from processes import at_rest, eventually
from silent_api import silent_api

BODY = {"model": "claude-sonnet-5", "max_tokens": 100}
# Long after the limits under test, which are a second or less.
HANGS = 30.0


async def status_of(transport: httpx2.AsyncBaseTransport, text: str, *, stream: bool) -> tuple[int, dict[str, str]]:
    """Send over HTTP, and return the status (the event's, if a stream ends with an error) and the headers."""
    body = {**BODY, "stream": stream, "messages": [{"role": "user", "content": text}]}
    # An open client, since closing it would close the transport.
    client = httpx2.AsyncClient(transport=transport, base_url="http://claude", timeout=None)
    response = await client.post("/v1/messages", json=body, headers={"x-api-key": "t"})
    in_stream = {"timeout_error": 504}.get(response.text.rpartition('"error":{"type":"')[2].partition('"')[0], 200)
    return response.status_code if response.status_code != 200 else in_stream, dict(response.headers)


async def output_of(agent: Agent[object, str], text: str, *, stream: bool) -> str:
    if not stream:
        return (await agent.run(text)).output
    async with agent.run_stream(text) as run:
        return await run.get_output()


async def status_of_run(model: ClaudeCodeModel, text: str, *, stream: bool) -> int:
    with pytest.raises(ModelHTTPError, match="within 1 seconds") as caught:
        await output_of(Agent(model), text, stream=stream)
    return caught.value.status_code


@pytest.mark.slow
@pytest.mark.parametrize("limit", [{"turn": 1.0}, {"silence": 1.0}], ids=["turn", "silence"])
async def test_a_limit_ends_a_request_to_a_silent_api(limit: dict[str, float], loopback: LoopbackServer) -> None:
    """MSG-E10, MODEL-89, MSG-35: whole and streamed, with the client's retries on."""
    async with AsyncExitStack() as stack:
        env = {**loopback.env(), "ANTHROPIC_BASE_URL": await stack.enter_async_context(silent_api())}
        provider = await stack.enter_async_context(ClaudeCodeProvider(env=env, pool=3, timeouts=Timeouts(**limit)))
        server = httpx2.ASGITransport(app=create_app(provider.transport, token="t"))
        model = ClaudeCodeModel(provider=provider)
        for silent in ("never", "headers", "middle"):
            with anyio.fail_after(HANGS):
                statuses = await asyncio.gather(
                    *(status_of_run(model, silent, stream=stream) for stream in (False, True)),
                    *(status_of(via, silent, stream=stream)
                      for via in (provider.transport, server) for stream in (False, True)),
                )  # fmt: skip
            assert [status if isinstance(status, int) else status[0] for status in statuses] == [504] * 6, silent


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_the_api_may_be_silent_for_longer_than_claude_code_would_wait(loopback: LoopbackServer) -> None:
    """SES-26: that is three to six minutes; the limits of the caller are none, and a quarter of an hour."""
    async with silent_api(ping_seconds=370, pings=1) as url:
        env = {**loopback.env(), "ANTHROPIC_BASE_URL": url}
        async with ClaudeCodeProvider(env=env, pool=3, max_retries=0, timeouts=Timeouts(silence=None)) as provider:
            agent = Agent(ClaudeCodeModel(provider=provider, settings=ModelSettings(timeout=900)))
            runs = await asyncio.gather(*(agent.run(moment) for moment in ("never", "headers", "middle")))
    assert [run.output for run in runs] == ["Done."] * 3


@pytest.mark.deaths
async def test_a_request_that_queues_does_not_use_up_the_client_s_timeout(loopback: LoopbackServer) -> None:
    """MSG-85: the last run queues for longer than the timeout."""

    async def respond(_: object) -> str:
        await asyncio.sleep(0.3)
        return "Done."

    loopback.respond = respond
    async with ClaudeCodeProvider(env=loopback.env(), pool=1, max_retries=0) as provider:
        agent = Agent(ClaudeCodeModel(provider=provider, settings=ModelSettings(timeout=1.5)))
        await provider.warm(1)
        with anyio.fail_after(HANGS):
            results = await asyncio.gather(*(agent.run("Hello.") for _ in range(8)))
        stats = provider.transport.stats()
    assert [result.output for result in results] == ["Done."] * 8
    assert (stats.waits, stats.queue_timeouts) == (7, 0)
    assert max(stats.queue_seconds) > 1.5


@pytest.mark.deaths
@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_in_claude_code_s_loop_does_not_use_up_the_client_s_timeout(
    stream: bool, loopback: LoopbackServer
) -> None:
    """MSG-85."""

    async def wait() -> str:
        await asyncio.sleep(3)
        return "waited"

    loopback.script([[call("mcp__pydantic_tools__wait")], "Done."])
    async with ClaudeCodeProvider(env=loopback.env(), pool=1, max_retries=0) as provider:
        model = ClaudeCodeModel(provider=provider, settings=ModelSettings(timeout=2))
        agent = Agent(model, tools=[wait])
        model.set_agent_toolsets(agent.toolsets)
        assert await output_of(agent, "Wait.", stream=stream) == "Done."


@pytest.fixture
async def full(loopback: LoopbackServer) -> AsyncIterator[ClaudeCodeProvider]:
    """Yield a provider with a single process, busy during the test."""
    release = asyncio.Event()

    async def block(_: object) -> str:
        await release.wait()
        return "Done."

    loop = asyncio.get_running_loop()

    def respond(_: object) -> Awaitable[str]:
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(block(_), loop))

    loopback.respond = respond
    async with ClaudeCodeProvider(env=loopback.env(), pool=1, timeouts=Timeouts(queue=0.5)) as provider:
        await provider.warm(1)
        busy = asyncio.ensure_future(Agent(ClaudeCodeModel(provider=provider)).run("Hello."))
        await eventually(lambda: bool(loopback.requests))
        yield provider
        release.set()
        assert (await busy).output == "Done."


@pytest.mark.deaths
@pytest.mark.parametrize("stream", [False, True])
async def test_a_wait_for_a_free_process_has_an_error_of_its_own(full: ClaudeCodeProvider, stream: bool) -> None:
    """MODEL-90, MSG-E12, MSG-35: after one limit, independent of the client's retries."""
    agent = Agent(ClaudeCodeModel(provider=full))
    with anyio.fail_after(HANGS), pytest.raises(ModelTimeoutError, match=r"1 of 1 processes .*`pool=`") as caught:
        if stream:
            async with agent.run_stream("Hello."):
                pass
        else:
            await agent.run("Hello.")
    assert caught.value.phase == "pool"
    cause = caught.value.__cause__
    assert isinstance(cause, QueueTimeoutError)
    assert (cause.seconds, cause.size, cause.waiting, len(cause.busy_seconds)) == (0.5, 1, 1, 1)
    assert cause.busy_seconds[0] >= 0.5
    stats = full.transport.stats()
    assert (stats.queue_timeouts, stats.waiting, stats.busy) == (1, 0, 1)


@pytest.mark.worlds
async def test_clients_of_the_transport_and_of_the_server_get_a_retryable_status(
    full: ClaudeCodeProvider,
) -> None:
    """MSG-E12"""
    for via in (full.transport, httpx2.ASGITransport(app=create_app(full.transport, token="t"))):
        status, headers = await status_of(via, "Hello.", stream=True)
        assert (status, headers["retry-after"], headers.get("x-should-retry")) == (503, "1", None)


@pytest.mark.parametrize("headers", [{"retry-after": "60"}, {"retry-after-ms": "60000"}])
async def test_a_wait_above_the_limit_is_an_error_at_once(
    headers: dict[str, str], loopback: LoopbackServer, caplog: pytest.LogCaptureFixture
) -> None:
    """MODEL-91"""
    loopback.fail_next(429, headers=headers)
    async with ClaudeCodeProvider(env=loopback.env(), pool=1, max_retry_wait=59.5) as provider:
        with anyio.fail_after(HANGS), pytest.raises(ModelHTTPError) as caught:
            await Agent(ClaudeCodeModel(provider=provider)).run("Hello.")
    assert caught.value.retry_after == 60
    assert len(loopback.requests) == 1
    assert "wait 60 seconds, longer than max_retry_wait=59.5" in caplog.text


def test_an_invalid_limit_for_waits_is_rejected() -> None:
    """MODEL-91"""
    with pytest.raises(ValueError, match="max_retry_wait=-1 cannot be used"):
        ClaudeCodeProvider(max_retry_wait=-1)


NO_MORE = {"x-should-retry": "false"}
AGAIN = {"x-should-retry": "true"}
NOW = {"retry-after-ms": "1"}


@pytest.mark.parametrize(
    ("stream", "fault", "requests"),
    [
        (False, {"status": 429, "headers": NOW}, 2),
        (False, {"status": 413, "headers": NOW}, 1),
        (False, {"status": 500, "headers": NO_MORE}, 1),
        (False, {"status": 400, "headers": {**AGAIN, **NOW}}, 2),
        (True, {"status": 529, "headers": NOW}, 2),
        (False, {"after_events": 5}, 2),
        (True, {"after_events": 0}, 2),
        (True, {"after_events": 3}, 1),
        (False, {"status": 529, "after_events": 3}, 2),
        (True, {"status": 529, "after_events": 3}, 1),
    ],
)
async def test_the_client_retries_exactly_the_documented_failures(
    stream: bool, fault: dict[str, Any], requests: int, slow_api: LoopbackServer, repeating_provider: ClaudeCodeProvider
) -> None:
    """MODEL-95: as documented in docs/troubleshooting.md."""
    # Few tokens, or pydantic-ai would stream every request.
    agent = Agent(ClaudeCodeModel(provider=repeating_provider), model_settings=ModelSettings(max_tokens=100))
    slow_api.fail_next(**fault)
    try:
        await output_of(agent, "Hello.", stream=stream)
    except ModelAPIError as error:
        assert requests == 1
        assert isinstance(error, ModelHTTPError | ModelConnectionError)
    else:
        assert requests == 2
    await at_rest(repeating_provider)
    assert sum("Hello." in str(body["messages"]) for body in slow_api.requests) == requests
