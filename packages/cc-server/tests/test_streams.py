"""Chunks and deltas that came together are sent together, and none is lost or late."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cc_server.streams import with_pings


def delta(index: int, kind: str, **fields: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


async def test_chunks_that_came_together_are_one() -> None:
    """The first is not held back for the next, and none that comes during a send is lost."""
    has_sent = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield b"1"
        yield b"2"
        await has_sent.wait()
        yield b"3"

    sent: list[bytes] = []
    async for chunk in with_pings(chunks(), 10, b"ping"):
        sent.append(chunk)
        has_sent.set()
        await asyncio.sleep(0.01)  # a slow client
    assert sent == [b"12", b"3"]


async def test_chunks_before_an_error_are_sent() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"1"
        raise ConnectionError

    stream = with_pings(chunks(), 10, b"ping")
    assert await anext(stream) == b"1"
    with pytest.raises(ConnectionError):
        await anext(stream)
