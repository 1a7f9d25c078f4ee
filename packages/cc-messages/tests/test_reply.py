"""A response between two threads: the background loop writes it, the caller's loop reads it."""

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from cc_messages.request_handler import Body, Head, ResponseStream
from cc_session.internals import start_on_background

HEAD = Head(200, {"content-type": "text/plain"})


@pytest.fixture(autouse=True)
def background() -> None:
    """A running background loop; abandoned replies are reported there."""
    start_on_background(asyncio.sleep, 0)


# The longest wait for another thread: then the event counts as lost.
pytestmark = pytest.mark.timeout(5)


def on_background(function: Callable[[], object]) -> None:
    """Run `function` on the background loop, and do not wait for it."""

    async def call() -> None:
        function()

    start_on_background(call)


def abandonment(reply: ResponseStream) -> threading.Event:
    """Return an event that is set when the background side learns that the reader has gone."""
    event = threading.Event()
    on_background(lambda: reply.on_abandon(event.set))
    return event


async def is_set_soon(event: threading.Event) -> bool:
    return await asyncio.to_thread(event.wait, 5)


async def test_head_and_body_arrive_in_order_and_once() -> None:
    reply = ResponseStream()

    async def write() -> None:
        reply.start(200, HEAD.headers)
        reply.start(500, {})
        for number in range(100):
            reply.write(b"%d," % number)
            if number % 10 == 0:
                await asyncio.sleep(0)
        reply.end()
        reply.end(ValueError("too late"))

    start_on_background(write)
    assert await reply.head(None) == HEAD
    data = b"".join([chunk async for chunk in Body(reply, None, None)])
    assert data == b"".join(b"%d," % number for number in range(100))
    assert await reply.read(None) == b""


async def test_each_chunk_wakes_a_reader_that_waits() -> None:
    """A signal between the check of the buffer and the wait must not be lost."""
    reply = ResponseStream()
    for number in range(300):
        on_background(lambda number=number: reply.write(b"%d" % number))
        received = b""
        while received != b"%d" % number:
            received += await reply.read(1)


async def test_an_error_is_raised_where_the_body_stands_and_again() -> None:
    """Without a head, waiting for the head raises it."""
    error = httpx2.ReadError("lost")
    begun, none = ResponseStream(), ResponseStream()
    begun.start(200, {})
    begun.write(b"some")
    begun.end(error)
    on_background(lambda: none.end(error))
    assert await begun.head(None) == Head(200, {})
    assert await begun.read(None) == b"some"
    for read in (begun.read, begun.read, none.head):
        with pytest.raises(httpx2.ReadError) as caught:
            await read(None)
        assert caught.value is error
    assert none.has_head


async def test_a_head_that_does_not_come_is_a_timeout_and_given_up() -> None:
    reply = ResponseStream()
    abandoned = abandonment(reply)
    on_background(reply.alive)
    with pytest.raises(httpx2.ReadTimeout, match=r"0\.01 seconds"):
        await reply.head(0.01)
    assert await is_set_soon(abandoned)


@pytest.mark.parametrize("begins", [False, True])
async def test_no_timeout_runs_while_claude_code_waits_for_a_tool(begins: bool) -> None:
    """MSG-85: neither for the head nor for the rest."""
    reply, looks = ResponseStream(), iter([True, True, True])
    reply.waited_at = lambda: time.monotonic() if next(looks, False) else 0
    reply.alive()
    if begins:
        reply.start(200, {})
    with pytest.raises(httpx2.ReadTimeout, match=r"0\.01 seconds"):
        await (reply.read if begins else reply.head)(0.01)
    assert next(looks, None) is None


async def test_cancelling_the_wait_for_the_head_gives_up() -> None:
    reply = ResponseStream()
    abandoned = abandonment(reply)
    task = asyncio.create_task(reply.head(None))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await is_set_soon(abandoned)
    # The other side may not know it yet, and continues without harm.
    reply.start(200, {})
    reply.write(b"unread")
    reply.end()


async def calls_so_far(calls: list[int]) -> list[int]:
    """Return the calls after all current work on the background loop."""
    marker = threading.Event()
    on_background(marker.set)
    assert await is_set_soon(marker)
    return calls


async def test_giving_up_is_reported_once_and_not_after_the_body() -> None:
    given_up, ended = ResponseStream(), ResponseStream()
    calls: list[int] = []
    on_background(lambda: given_up.on_abandon(lambda: calls.append(threading.get_ident())))
    assert not await calls_so_far(calls)
    for _ in range(3):
        given_up.abandon()
    [caller] = await calls_so_far(calls)
    assert caller != threading.get_ident()
    ended.on_abandon(lambda: calls.append(0))
    ended.end()
    ended.abandon()
    await Body(ended, None, None).aclose()
    assert await calls_so_far(calls) == [caller]


async def test_giving_up_before_the_other_side_listens_is_told_at_once() -> None:
    reply = ResponseStream()
    reply.abandon()
    calls: list[str] = []
    reply.on_abandon(lambda: calls.append("first phase"))
    reply.on_abandon(lambda: calls.append("second phase"))
    assert calls == ["first phase", "second phase"]


async def forget(body: Body) -> None:
    """Abandon a response, without another reference to it."""


@pytest.mark.deaths
@pytest.mark.parametrize("part_with", [Body.aclose, forget])
async def test_a_body_that_is_closed_or_forgotten_is_given_up(part_with: Callable[[Body], Awaitable[None]]) -> None:
    reply = ResponseStream()
    abandoned = abandonment(reply)
    await part_with(Body(reply, None, None))
    gc.collect()
    assert await is_set_soon(abandoned)


def test_another_loop_than_the_opening_loop_may_read_a_response() -> None:
    reply = ResponseStream()
    results: list[Any] = []
    on_background(lambda: reply.start(200, {}))
    results.append(asyncio.run(reply.head(5)))
    with pytest.raises(httpx2.ReadTimeout, match=r"0\.01 seconds"):
        asyncio.run(reply.read(0.01))
    # The loop that waited is closed now, and the body may be read on.
    on_background(lambda: reply.write(b"some"))
    on_background(reply.end)
    results.append(asyncio.run(reply.read(5)))
    results.append(asyncio.run(reply.read(5)))
    assert results == [Head(200, {}), b"some", b""]


@pytest.mark.deaths
async def test_the_heads_timeout_starts_with_a_process_and_with_each_ping() -> None:
    """MSG-85"""
    reply = ResponseStream()
    reading = asyncio.ensure_future(reply.head(0.3))
    await asyncio.sleep(0.35)
    assert not reading.done()  # while the request queues
    for _ in range(20):
        on_background(reply.alive)
        await asyncio.sleep(0.02)
    assert not reading.done()
    with pytest.raises(httpx2.ReadTimeout):
        await reading
