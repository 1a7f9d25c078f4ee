"""The synchronous client over the transport, in a thread with or without an event loop."""

import asyncio
from typing import Any, cast

import httpx2
from anthropic import Anthropic
from anthropic.types import Message

from warm_clients.client import Client

ASK: Any = {"model": "claude-sonnet-5", "max_tokens": 99, "messages": [{"role": "user", "content": "Hello."}]}


def sync(client: Client) -> Anthropic:
    """Return a client that is not closed, since the tests share the transport."""
    return Anthropic(api_key="not used", http_client=httpx2.Client(transport=client.transport), max_retries=0)


def text(claude: Anthropic) -> str:
    return cast(Any, cast("Message", claude.messages.create(**ASK)).content[0]).text


async def test_an_answer_and_a_stream_of_it(several: Client) -> None:
    """MSG-94"""
    several.answers("one two three four")
    claude = sync(several)
    assert text(claude) == "one two three four"
    with claude.messages.stream(**ASK) as stream:
        pieces = [*stream.text_stream]
    assert "".join(pieces) == "one two three four"
    assert len(pieces) > 1


async def test_leaving_a_stream_frees_its_process(slow_client: Client) -> None:
    """MSG-27, MSG-94: the rest of the answer would take many seconds."""
    slow_client.answers("word " * 1000)
    claude = sync(slow_client)
    with claude.messages.stream(**ASK) as stream:
        next(iter(stream))
    async with asyncio.timeout(10):
        await slow_client.settled()
    slow_client.answers("Good day.")
    assert text(claude) == "Good day."
