"""The synchronous client over the transport, in a thread with or without an event loop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import httpx2
import pytest
from anthropic import Anthropic, APITimeoutError, RateLimitError
from anthropic.types import Message

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTransport
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


async def test_many_threads_at_once(several: Client) -> None:
    """MSG-94"""
    several.answers("Good day.")
    claude = sync(several)
    with ThreadPoolExecutor(3) as threads:
        assert {*threads.map(text, [claude] * 9)} == {"Good day."}
    assert len(several.api.requests) == 9


async def test_errors_and_timeouts_are_those_of_the_client(several: Client) -> None:
    """MSG-30, MSG-94"""
    claude = sync(several)
    several.api.fail_next(429, message="made-up")
    with pytest.raises(RateLimitError, match="made-up"):
        text(claude)
    several.api.fail_next(delay=5)
    with pytest.raises(APITimeoutError):
        text(claude.with_options(timeout=0.2))


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


@pytest.mark.deaths
def test_closing_the_client_ends_the_processes(shared_api: LoopbackServer) -> None:
    """MSG-94"""
    transport = ClaudeCodeTransport(pool=1, env=shared_api.env())
    with Anthropic(api_key="not used", http_client=httpx2.Client(transport=transport)) as claude:
        assert text(claude)
        assert transport.pids
    assert not transport.pids
