"""Leaving an answer early frees the process for the next request at once, and ends the API request."""

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx2
import pytest

from cc_session import Timeouts
from warm_clients.api_data import CALL, result
from warm_clients.client import Client
from warm_clients.fixtures import Connect, Processes
from warm_clients.waiting import eventually, wait_for_ever

Leave = Callable[[Client, list[Any]], Awaitable[None]]

# Cleaning up after a cancelled start may take this long.
QUICK = Timeouts(close=0.2)
# The events take longer than any test may.
LONG = "word " * 3000
HISTORIES: list[list[Any]] = [["b"], ["a", "x", "b"], ["a", [CALL], [result()]]]


async def close_after_the_first_chunk(client: Client, messages: list[Any]) -> None:
    async with client.stream(*messages) as response:
        async for _ in response.aiter_bytes():
            break


async def drop_after_the_first_chunk(client: Client, messages: list[Any]) -> None:
    request = client.http.build_request("POST", "/v1/messages", json=client.body(*messages, stream=True))
    response = await client.http.send(request, stream=True)
    await anext(response.aiter_bytes())
    del response
    gc.collect()


async def cancel_while_the_head_is_waited_for(client: Client, messages: list[Any]) -> None:
    task = asyncio.create_task(client.ask(*messages))
    await eventually(lambda: bool(client.api.requests))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def cancel_while_the_body_is_read(client: Client, messages: list[Any]) -> None:
    has_head = asyncio.Event()

    async def read() -> None:
        async with client.stream(*messages) as response:
            has_head.set()
            await response.aread()

    task = asyncio.create_task(read())
    await has_head.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def time_out(client: Client, messages: list[Any]) -> None:
    client.http.timeout = httpx2.Timeout(1)
    with pytest.raises(httpx2.ReadTimeout):
        await client.ask(*messages)
    client.http.timeout = httpx2.Timeout(20)


WAYS: list[Leave] = [drop_after_the_first_chunk, cancel_while_the_head_is_waited_for, time_out]
MORE_WAYS: list[Leave] = [close_after_the_first_chunk, cancel_while_the_body_is_read]


@pytest.mark.deaths
@pytest.mark.parametrize(
    "leave",
    [*WAYS, *(pytest.param(way, marks=pytest.mark.slow) for way in MORE_WAYS)],
    ids=lambda way: way.__name__,
)
async def test_the_turn_ends_at_once_and_the_process_goes_on(leave: Leave, slow_client: Client) -> None:
    """MSG-27"""
    for messages in HISTORIES:
        slow_client.api.requests.clear()
        slow_client.answers(LONG)
        await leave(slow_client, messages)
        await slow_client.settled()  # mostly in 30 ms; the rest of the answer would take longer
        assert len(slow_client.api.requests) == 1
        await slow_client.answers_exactly(*messages)
        assert len(slow_client.api.requests) == 1
    assert not slow_client.starts


@pytest.mark.parametrize("stream", [False, True])
async def test_leaving_while_the_api_has_not_begun_ends_the_call(stream: bool, client: Client) -> None:
    """MSG-27: a leaving client does not wait for the API, and the API sees the end."""
    ended = threading.Event()

    async def respond(body: dict[str, Any]) -> str:
        try:
            return await wait_for_ever(body)
        finally:
            ended.set()

    client.answers(respond)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: client.ask("b", stream=stream))
            await eventually(lambda: bool(client.api.requests))
            tasks.cancel_scope.cancel()
    assert await asyncio.to_thread(ended.wait, 10)
    await client.answers_exactly("b")
    assert len(client.api.requests) == 1
    assert not client.starts


async def test_a_request_that_is_given_up_while_it_waits_takes_no_process(slow_client: Client) -> None:
    slow_client.answers(LONG)
    async with slow_client.stream("Take your time.") as response:
        chunks = response.aiter_bytes()
        await anext(chunks)
        with anyio.move_on_after(0.1) as scope:
            await slow_client.ask("Me too.")
        assert scope.cancelled_caught
        await anext(chunks)
    await slow_client.settled()
    assert len(slow_client.api.requests) == 1


@pytest.mark.deaths
async def test_a_process_whose_start_was_given_up_serves_the_next_request(
    connect: Connect, processes: Processes
) -> None:
    """MSG-74"""
    client = connect(size=1, timeouts=QUICK)
    task = asyncio.create_task(client.ask("Hello."))
    await eventually(processes)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await client.ask("Hello.")).status == 200
    assert client.starts == 1
