"""Two loaded servers behind HAProxy: the first is killed and comes back, the second stopped and started."""

import asyncio
import json
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from anthropic import APIConnectionError, APIError, AsyncAnthropic
from anthropic.types import Message, TextBlock

from balanced_servers import Balanced, balanced
from cc_loopback import LoopbackServer

REQUESTS, AT_ONCE, SIZE = 500, 16, 3
KILL_AT, STOP_AT = 100, 300
API_SECONDS = 0.1


class Load:
    """Sends numbered requests, and counts the attempts for each."""

    def __init__(self, place: Balanced) -> None:
        self.attempts = Counter[str]()
        self.answered = 0
        self._place = place
        self._changed = asyncio.Condition()

    async def _count(self, request: httpx2.Request) -> None:
        self.attempts[question(json.loads(request.content))] += 1

    async def run(self) -> None:
        """Send all requests; raise if an answer is missing or wrong."""
        numbers = iter(range(REQUESTS))
        async with httpx2.AsyncClient(event_hooks={"request": [self._count]}, timeout=60) as http:
            client = AsyncAnthropic(
                base_url=self._place.url, api_key=self._place.token, http_client=http, max_retries=8
            )

            async def send_next() -> None:
                for number in numbers:
                    prompt = f"Question {number}"
                    text = await (self._stream if number % 4 == 0 else self._ask)(client, prompt)
                    assert text == f"Answer to {prompt}"
                    self.answered += 1
                    async with self._changed:
                        self._changed.notify_all()

            await asyncio.gather(*(send_next() for _ in range(AT_ONCE)))

    async def _ask(self, client: AsyncAnthropic, prompt: str) -> str:
        message = cast("Message", await client.messages.create(**body(prompt)))
        return cast("TextBlock", message.content[0]).text

    async def _stream(self, client: AsyncAnthropic, prompt: str) -> str:
        """Read a stream. A broken stream raises, and the caller repeats it, since no client does."""
        while True:
            try:
                async with client.messages.stream(**body(prompt)) as stream:
                    return await stream.get_final_text()
            except (httpx2.RemoteProtocolError, httpx2.ReadError, APIConnectionError):
                pass
            except APIError as error:
                if getattr(error, "status_code", 200) != 200:  # an error event in a stream
                    raise

    async def reaches(self, answered: int) -> None:
        """Wait until so many requests are answered."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.answered >= answered)


def body(prompt: str) -> Any:
    return {"model": "claude-sonnet-5", "max_tokens": 99, "messages": [{"role": "user", "content": prompt}]}


def question(request: dict[str, Any]) -> str:
    content = request["messages"][-1]["content"]
    return content if isinstance(content, str) else content[0]["text"]


async def respond(request: dict[str, Any]) -> str:
    await asyncio.sleep(API_SECONDS)
    return f"Answer to {question(request)}"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed: apt-get install haproxy")
async def test_no_request_is_lost_or_repeated_unseen_while_servers_end_and_return(
    loopback: LoopbackServer, tmp_path: Path
) -> None:
    """MSG-95, MSG-96"""
    assert sys.platform != "win32"  # where there is no HAProxy
    loopback.respond = respond
    with balanced(loopback, tmp_path, SIZE) as place:
        killed, stopped = place.servers
        load = Load(place)
        async with asyncio.TaskGroup() as group:
            group.create_task(load.run())
            await load.reaches(KILL_AT)
            await asyncio.to_thread(killed.end, signal.SIGKILL)
            before = len(loopback.calls)
            await asyncio.to_thread(killed.start)
            await load.reaches(STOP_AT)
            repeated = load.attempts.total() - len(load.attempts)
            assert await asyncio.to_thread(stopped.end, signal.SIGTERM) == 0
            await asyncio.to_thread(stopped.start)
        later = Counter(call.headers.get("x-server") for call in loopback.calls[before:])
    arrivals = Counter(question(request) for request in loopback.requests)
    assert load.answered == REQUESTS == len(arrivals)
    assert later["a"] > AT_ONCE, later  # the killed server came back, and got requests again
    # Each arrival is a client's attempt: neither HAProxy nor a server repeated any.
    assert {name: count for name, count in arrivals.items() if count > load.attempts[name]} == {}
    # A killed server costs at most its current requests; an orderly stop costs none.
    assert 0 < repeated <= 2 * AT_ONCE
    assert load.attempts.total() - len(load.attempts) - repeated <= AT_ONCE
