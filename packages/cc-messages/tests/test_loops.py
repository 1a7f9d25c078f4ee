"""A transport serves all loops and threads in a program."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import httpx2
import pytest

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport
from cc_session import Timeouts
from warm_clients.client import Client
from warm_clients.fixtures import Connect


def echo(body: dict[str, Any]) -> str:
    return f"You said {body['messages'][-1]['content']}"


async def ask(transport: ClaudeCodeTransport, text: str) -> str:
    """Ask from a new loop, with a new client that stays open, as most programs do."""
    client = httpx2.AsyncClient(transport=transport, timeout=20)
    body = {"model": "claude-sonnet-5", "max_tokens": 9, "messages": [{"role": "user", "content": text}]}
    response = await client.post("http://claude/v1/messages", json=body)
    return json.loads(response.content)["content"][0]["text"]


@pytest.mark.usefixtures("anyio_backend")  # for the fixtures, which are asynchronous
def test_one_loop_after_another_shares_the_process(client: Client) -> None:
    client.answers(echo)
    for number in range(3):
        assert asyncio.run(ask(client.transport, f"loop {number}")) == f"You said loop {number}"
    assert not client.starts


@pytest.mark.worlds
@pytest.mark.usefixtures("anyio_backend")  # for the fixtures, which are asynchronous
def test_threads_get_their_own_answers_at_the_same_time(connect: Connect) -> None:
    """MSG-13, ARCH-17"""
    client = connect(size=2)
    client.answers(echo)
    asyncio.run(client.transport.warm(2))
    together = threading.Barrier(8)

    def run(thread: int) -> list[str]:
        async def all_of_it() -> list[str]:
            together.wait(10)
            return await asyncio.gather(*(ask(client.transport, f"{thread}.{number}") for number in range(3)))

        return asyncio.run(all_of_it())

    with ThreadPoolExecutor(8) as threads:
        answers = [*threads.map(run, range(8))]
    assert answers == [[f"You said {thread}.{number}" for number in range(3)] for thread in range(8)]
    assert len(client.transport.pids) == 2


@pytest.mark.deaths
def test_a_loop_that_ends_in_the_middle_takes_nothing_along(shared_api: LoopbackServer) -> None:
    """Waiting for the process's start does not block either."""
    shared_api.respond = echo
    transport = ClaudeCodeTransport(env=shared_api.env(), pool=2, timeouts=Timeouts(close=0.2))

    async def leave() -> None:
        task = asyncio.create_task(ask(transport, "unheard"))
        await anyio.sleep(0.01)
        assert not task.done()

    asyncio.run(leave())
    assert asyncio.run(ask(transport, "heard")) == "You said heard"
    asyncio.run(transport.aclose())


async def test_a_stream_is_opened_read_and_closed_in_three_tasks(client: Client) -> None:
    """ARCH-17"""
    client.answers("word " * 60)
    responses: list[httpx2.Response] = []
    chunks: list[bytes] = []

    async def open_it() -> None:
        body = client.body("Hello.", stream=True)
        request = client.http.build_request("POST", "/v1/messages", json=body)
        responses.append(await client.http.send(request, stream=True))

    async def read_it() -> None:
        chunks.extend([chunk async for chunk in responses[0].aiter_raw()])

    async def close_it() -> None:
        await responses[0].aclose()

    for part in (open_it, read_it, close_it):
        await asyncio.create_task(part())
    assert b"".join(chunks).count(b'"text_delta"') == 60


async def test_streams_are_read_at_the_pace_of_their_readers(client: Client) -> None:
    """A slow or absent reader keeps no process: the next request gets it."""
    client.answers("word " * 60)
    open_streams: list[Any] = [client.stream(f"stream {number}") for number in range(3)]
    with anyio.fail_after(20):
        responses = [await stream.__aenter__() for stream in open_streams]
        assert (await client.ask("Meanwhile.")).status == 200
        for stream, response in zip(open_streams, responses, strict=True):
            data: bytes = await response.aread()
            assert data.count(b'"text_delta"') == 60
            await stream.__aexit__(None, None, None)
    assert not client.starts
