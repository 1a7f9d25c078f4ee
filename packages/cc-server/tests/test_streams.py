"""Chunks and deltas that came together are sent together, and none is lost or late."""

import asyncio
import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cc_server.openai import joined
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


def test_deltas_of_a_block_that_came_together_are_joined() -> None:
    """MSG-171: but for the first, and no other events, and none of another block or kind."""
    texts = [delta(0, "text_delta", text=text) for text in "abcd"]
    stop = {"type": "content_block_stop", "index": 0}
    signatures = [delta(1, "signature_delta", signature=text) for text in "efg"]
    inputs = [delta(2, "input_json_delta", partial_json=text) for text in "{}"]
    thoughts = [delta(3, "thinking_delta", thinking=text) for text in "hij"]
    others = [delta(1, "text_delta", text="k"), stop, *signatures, *inputs]
    assert joined(copy.deepcopy([*texts, *others, *thoughts])) == [
        texts[0], delta(0, "text_delta", text="bcd"), *others, thoughts[0], delta(3, "thinking_delta", thinking="ij"),
    ]  # fmt: skip
