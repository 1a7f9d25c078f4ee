"""Three loaded servers behind HAProxy with one database: one is killed and returns, the others are updated in turn."""

import asyncio
import json
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any, cast

import httpx2
import psycopg
import pytest
from anthropic import APIConnectionError, APIError, AsyncAnthropic, RateLimitError
from anthropic.types import Message, TextBlock

from balanced_servers import Balanced, Server, balanced
from cc_loopback import LoopbackServer
from postgres import is_installed, postgres
from warm_clients.waiting import eventually

REQUESTS, AT_ONCE = 500, 16
KILL_AT, UPDATE_AT = 100, 250
API_SECONDS = 0.1
LEFT = "Question of a client that leaves"
CLIENTS = """
[clients.many]
token = "many"
tokens_per_day = 10_000_000

[clients.free]
token = "free"

[clients.few]
token = "few"
tokens_per_day = 1
"""


class Load:
    """Sends numbered requests, and counts the attempts for each."""

    def __init__(self, place: Balanced) -> None:
        self.attempts = Counter[str]()
        self.answered = self.tokens = 0
        self._place = place
        self._changed = asyncio.Condition()

    async def _count(self, request: httpx2.Request) -> None:
        self.attempts[question(json.loads(request.content))] += 1

    async def run(self) -> None:
        """Send all requests; raise if an answer is missing or wrong."""
        numbers = iter(range(REQUESTS))
        async with httpx2.AsyncClient(event_hooks={"request": [self._count]}, timeout=60) as http:
            client = AsyncAnthropic(base_url=self._place.url, api_key="many", http_client=http, max_retries=8)

            async def send_next() -> None:
                for number in numbers:
                    prompt = f"Question {number}"
                    message = await (self._stream if number % 4 == 0 else self._ask)(client, prompt)
                    assert cast("TextBlock", message.content[0]).text == f"Answer to {prompt}"
                    self.answered += 1
                    self.tokens += message.usage.input_tokens + message.usage.output_tokens
                    async with self._changed:
                        self._changed.notify_all()

            await asyncio.gather(*(send_next() for _ in range(AT_ONCE)))

    async def _ask(self, client: AsyncAnthropic, prompt: str) -> Message:
        return cast("Message", await client.messages.create(**body(prompt)))

    async def _stream(self, client: AsyncAnthropic, prompt: str) -> Message:
        """Read a stream. A broken stream raises, and the caller repeats it, since no client does."""
        while True:
            try:
                async with client.messages.stream(**body(prompt)) as stream:
                    return await stream.get_final_message()
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
    await asyncio.sleep(600 if question(request) == LEFT else API_SECONDS)
    return f"Answer to {question(request)}"


async def is_refused(url: str) -> bool:
    """Return true if the client with a small budget is refused."""
    async with AsyncAnthropic(base_url=url, api_key="few", max_retries=0) as client:
        try:
            await client.messages.create(**body("Question of few"))
        except RateLimitError:
            return True
    return False


async def leave(place: Balanced, loopback: LoopbackServer) -> None:
    """Leave an answer of minutes, and wait until no server is busy with it."""
    async with httpx2.AsyncClient(headers={"x-api-key": "free"}, timeout=60) as client:

        async def is_busy(server: Server) -> bool:
            usage = await client.get(f"http://127.0.0.1:{server.port}/v1/usage")
            return usage.json()["requests"]["in_progress"] > 0

        asking = asyncio.create_task(client.post(f"{place.url}/v1/messages", json=body(LEFT)))
        await eventually(lambda: any(question(request) == LEFT for request in loopback.requests))
        asking.cancel()
        for _ in range(100):
            if not any([await is_busy(server) for server in place.servers]):
                return
            await asyncio.sleep(0.1)
    raise TimeoutError("a server still answers a client that has left")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed: apt-get install haproxy")
@pytest.mark.skipif(not is_installed(), reason="PostgreSQL is not installed: apt-get install postgresql")
async def test_no_request_and_no_budget_is_lost_while_servers_end_and_return(
    loopback: LoopbackServer, tmp_path: Path
) -> None:
    """MSG-95, MSG-96, MSG-176"""
    assert sys.platform != "win32"  # where there is no HAProxy
    loopback.respond = respond
    (clients := tmp_path / "clients.toml").touch(0o600)
    clients.write_text(CLIENTS, "utf-8")
    with postgres() as database:
        options = ["--size", "3", "--clients", str(clients), "--usage-store", f"postgresql://tester@{database.place}"]
        with balanced({**loopback.env(), **database.environment}, tmp_path, options) as place:
            killed, *updated = place.servers
            await eventually(lambda: place.is_up)
            assert not await is_refused(place.url)
            await leave(place, loopback)
            load = Load(place)
            async with asyncio.TaskGroup() as group:
                group.create_task(load.run())
                await load.reaches(KILL_AT)
                await asyncio.to_thread(killed.end, signal.SIGKILL)
                before = len(loopback.calls)
                await asyncio.to_thread(killed.start)
                await load.reaches(UPDATE_AT)
                repeated = load.attempts.total() - len(load.attempts)
                for server in updated:
                    assert await asyncio.to_thread(server.end, signal.SIGTERM) == 0
                    await asyncio.to_thread(server.start)
            later = Counter(call.headers.get("x-server") for call in loopback.calls[before:])
            assert [await is_refused(f"http://127.0.0.1:{server.port}") for server in place.servers] == [True] * 3
        with psycopg.connect(database.url) as connection:
            query = "SELECT sum(requests), sum(tokens) FROM usage_by_model WHERE client = 'many'"
            [(requests, tokens)] = connection.execute(query).fetchall()
    arrivals = Counter(question(request) for request in loopback.requests)
    assert (arrivals.pop("Question of few"), arrivals.pop(LEFT)) == (1, 1)
    assert load.answered == REQUESTS == len(arrivals)
    assert later["a"] > AT_ONCE, later  # the killed server came back, and got requests again
    # Each arrival is a client's attempt: neither HAProxy nor a server repeated any.
    assert {name: count for name, count in arrivals.items() if count > load.attempts[name]} == {}
    # A killed server costs at most its current requests; an orderly stop costs none.
    assert 0 < repeated <= 2 * AT_ONCE
    assert load.attempts.total() - len(load.attempts) - repeated <= AT_ONCE
    # What a client has got is counted; what broke off may be.
    assert REQUESTS <= requests <= arrivals.total()
    assert load.tokens <= tokens <= load.tokens * arrivals.total() / REQUESTS * 1.1
