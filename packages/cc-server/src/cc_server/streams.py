"""Streams to a client: pings while nothing comes, and an end when the client leaves."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine

from starlette.requests import ClientDisconnect


async def unless(leaving: Coroutine[None, None, None], work: Coroutine[None, None, None]) -> None:
    """Await `work`, and cancel it when `leaving` ends."""
    working, departure = asyncio.ensure_future(work), asyncio.ensure_future(leaving)
    departure.add_done_callback(lambda _: working.cancel())
    try:
        await working
    except asyncio.CancelledError:
        if not departure.done():
            raise
        raise ClientDisconnect from None
    finally:
        working.cancel()
        departure.cancel()


async def with_pings(chunks: AsyncIterator[bytes], seconds: float | None, ping: bytes) -> AsyncGenerator[bytes]:
    """Yield chunks, and a ping after every `seconds` without a chunk; each chunk then ends with an event.

    Chunks that are there together are joined: to send a chunk takes longer than to make it.
    """
    arrived: list[bytes] = []
    news = asyncio.Event()

    async def read() -> None:
        try:
            async for chunk in chunks:
                arrived.append(chunk)
                news.set()
        finally:
            news.set()

    reading = asyncio.ensure_future(read())
    # A client that leaves leaves the error, too.
    reading.add_done_callback(lambda task: task.cancelled() or task.exception())
    try:
        while arrived or not reading.done():
            try:
                async with asyncio.timeout(seconds):
                    await news.wait()
            except TimeoutError:
                yield ping
                continue
            news.clear()
            if arrived:
                joined = b"".join(arrived)
                arrived.clear()  # before the send, during which more may come
                yield joined
        await reading
    finally:
        reading.cancel()
