"""A server's clients have separate tokens, request limits and budgets, exact to the request."""

import asyncio
import json
import logging
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from cc_messages.api.cost import cost_of, usages_of
from warm_clients.api_data import BODY, MESSAGES, MODEL
from warm_clients.client import Client
from warm_clients.waiting import eventually, wait_for_ever

from .conftest import Serve

USAGE = {"input_tokens": 60, "output_tokens": 40, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}
TOKENS = 110


def price_of(usage: dict[str, int]) -> float:
    return cost_of(usages_of({"id": "msg_1", "model": MODEL, "usage": usage})) or 0.0


PRICE = price_of(USAGE)


@pytest.fixture
def clients(clients_file: Callable[[str], Path]) -> Callable[..., Path]:
    """Write the file with each client's limits; names are tokens."""

    def write(**limits: str) -> Path:
        return clients_file("\n".join(f'[clients.{name}]\ntoken = "{name}"\n{text}' for name, text in limits.items()))

    return write


def priced(body: dict[str, Any]) -> dict[str, Any]:
    return {"content": "Fine.", "usage": USAGE}


@pytest.mark.parametrize(
    ("budget", "status", "kind", "amount"),
    [
        (f"tokens_per_day = {TOKENS + 1}", 429, "rate_limit_error", "220 of 111 tokens"),
        (
            f"dollars_per_day = {PRICE * 1.5}",
            402,
            "billing_error",
            f"${2 * PRICE:.4f} of ${1.5 * PRICE:.4f}",
        ),
    ],
)
async def test_the_request_crossing_a_budget_is_answered_and_the_next_refused(
    budget: str,
    status: int,
    kind: str,
    amount: str,
    serve: Serve,
    client: Client,
    clients: Callable[..., Path],
) -> None:
    """MSG-103, MSG-104: streamed or whole; other clients go on; a restart changes nothing, another budget does."""
    client.answers(priced)
    path = clients(alice=budget, bob="")
    served = serve(client, clients=path)
    assert (await served.post(token="alice")).status_code == 200
    crossing = await served.post(token="alice", stream=True)
    assert crossing.text.endswith('{"type":"message_stop"}\n\n')
    requests_before = len(client.api.requests)
    for server in (served, serve(client, clients=path)):
        refused = await server.post(token="alice")
        assert (refused.status_code, refused.json()["error"]["type"]) == (status, kind)
        assert f"The client alice has used {amount}" in refused.json()["error"]["message"]
        assert 0 < float(refused.headers["retry-after"]) <= 24 * 3600
        assert refused.headers["x-should-retry"] == "false"
    assert len(client.api.requests) == requests_before
    assert (await served.post(path=f"/any/gateway{MESSAGES}", token="alice")).status_code == status
    async with served.http(token="alice") as http:
        assert (await http.get("/v1/limits")).status_code == 200
    assert (await served.post(token="bob")).status_code == 200
    clients(alice="tokens_per_day = 1_000", bob="")
    assert (await served.post(token="alice")).status_code == 200


async def test_a_method_in_small_letters_passes_no_budget(
    serve: Serve, client: Client, clients: Callable[..., Path]
) -> None:
    """MSG-103: the transport accepts it."""
    served = serve(client, clients=clients(alice="tokens_per_day = 0"))

    def post() -> int:
        with closing(HTTPConnection(served.url.removeprefix("http://"), timeout=40)) as connection:
            connection.request("post", MESSAGES, json.dumps(BODY), {"x-api-key": "alice"})
            return connection.getresponse().status

    assert await asyncio.to_thread(post) == 429
    assert not client.api.requests


async def test_requests_at_once_are_all_counted(serve: Serve, client: Client, clients: Callable[..., Path]) -> None:
    """MSG-103: requests in progress when the budget is crossed are answered."""
    client.answers(priced)
    served = serve(client, clients=clients(alice=f"tokens_per_day = {8 * TOKENS}"))
    answers = await asyncio.gather(*(served.post(token="alice") for _ in range(7)))
    assert {answer.status_code for answer in answers} == {200}
    assert (await served.post(token="alice")).status_code == 200
    assert (await served.post(token="alice")).status_code == 429


async def test_each_client_has_its_own_places(serve: Serve, client: Client, clients: Callable[..., Path]) -> None:
    """MSG-103"""

    client.answers(wait_for_ever)
    served = serve(client, clients=clients(alice="max_requests = 1", bob="max_requests = 1"))
    first = asyncio.ensure_future(served.post(token="alice"))
    await eventually(lambda: bool(client.api.requests))
    refused = await served.post(token="alice")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert "The client alice may have at most 1 requests" in refused.json()["error"]["message"]
    second = asyncio.ensure_future(served.post(token="bob"))
    await eventually(lambda: client.transport.stats().waiting == 1)
    assert (await served.post(token="carol")).status_code == 401
    client.answers("Fine.")
    first.cancel()
    assert (await second).status_code == 200
    assert (await served.post(token="alice")).status_code == 200


async def test_an_answer_that_its_client_leaves_is_counted(
    serve: Serve, slow_client: Client, clients: Callable[..., Path], tmp_path: Path
) -> None:
    """MSG-103, MSG-104, MSG-108: the input before the first event, and the output so far when the client has left."""
    slow_client.answers(lambda _: {"content": "word " * 1000, "usage": {"input_tokens": 60, "output_tokens": 1000}})
    served = serve(slow_client, clients=clients(alice="tokens_per_day = 10_000"))
    with closing(sqlite3.connect(tmp_path / "clients.usage.sqlite")) as stored:

        def tokens() -> int:
            return sum(row[0] for row in stored.execute("SELECT tokens FROM usage_by_model"))

        async with served.http(token="alice") as http:
            async with http.stream("POST", MESSAGES, json={**BODY, "stream": True}) as response:
                text, before = "", 0
                async for chunk in response.aiter_text():
                    assert tokens() >= 60
                    text += chunk
                    if text.count("word ") >= 20:
                        before = tokens()
                        break
        await eventually(lambda: tokens() >= 60 + 20 * len("word ") // 4)
        assert before < tokens() < 1000


@pytest.mark.deaths
@pytest.mark.parametrize("stream", [True, False])
async def test_leaving_before_the_first_event_is_not_free(
    stream: bool, serve: Serve, several: Client, clients: Callable[..., Path], tmp_path: Path
) -> None:
    """MSG-103: the request continues until the API's first event, which has the counts."""
    may_answer = threading.Event()

    async def answer(_: dict[str, Any]) -> dict[str, Any]:
        await eventually(may_answer.is_set)
        return {"content": "word " * 20_000, "usage": {"input_tokens": 60, "output_tokens": 20_000}}

    several.answers(answer)
    served = serve(several, clients=clients(alice="tokens_per_day = 50", bob=""))
    leaver = asyncio.ensure_future(served.post(token="alice", stream=stream))
    await eventually(lambda: len(several.api.requests) == 1)
    leaver.cancel()
    await asyncio.wait({leaver})
    assert several.transport.stats().busy == 1
    free = asyncio.ensure_future(served.post(token="bob", stream=stream))
    await eventually(lambda: len(several.api.requests) == 2)
    free.cancel()  # without a budget the request ends at once
    await eventually(lambda: several.transport.stats().busy == 1)

    may_answer.set()
    await several.settled()
    with closing(sqlite3.connect(tmp_path / "clients.usage.sqlite")) as stored:
        rows = "SELECT client, requests, tokens FROM usage_by_model"
        await eventually(lambda: [row[1] for row in stored.execute(rows)] == [1])
        [(client, _, tokens)] = stored.execute(rows)
        assert client == "alice" and 60 <= tokens < 20_000
    several.answers(priced)
    assert (await served.post(token="alice")).status_code == 429


async def test_leaving_while_a_request_waits_for_a_process_is_free(
    serve: Serve, client: Client, clients: Callable[..., Path]
) -> None:
    """MSG-103: neither does an API error, which has counted nothing."""
    client.answers(wait_for_ever)
    served = serve(client, clients=clients(alice="tokens_per_day = 1", bob=""))
    first = asyncio.ensure_future(served.post(token="bob"))
    await eventually(lambda: bool(client.api.requests))
    second = asyncio.ensure_future(served.post(token="alice"))
    await eventually(lambda: client.transport.stats().waiting == 1)
    second.cancel()
    await eventually(lambda: client.transport.stats().waiting == 0)
    first.cancel()
    await client.settled()
    client.answers(priced)
    client.api.fail_next(529)
    assert (await served.post(token="alice")).status_code == 529
    assert (await served.post(token="alice")).status_code == 200
    assert (await served.post(token="alice")).status_code == 429


async def test_a_model_without_a_price_spends_no_budget_in_dollars_unseen(
    serve: Serve, client: Client, clients: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    """MSG-103"""
    caplog.set_level(logging.WARNING)
    client.answers(priced)
    served = serve(client, clients=clients(alice="dollars_per_day = 100", bob="tokens_per_day = 1_000"))
    named = await served.post(token="alice", model="claude-unheard-of-9")
    assert (named.status_code, named.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "claude-unheard-of-9 has no list price" in named.json()["error"]["message"]
    assert (await served.post(token="bob", model="claude-unheard-of-9")).status_code == 200
    assert not client.api.requests[:-1]
    assert (await served.post(token="alice", model="alias-of-a-gateway")).status_code == 200
    assert (await served.post(token="alice")).status_code == 402
    assert "'alias-of-a-gateway' has no list price" in caplog.text


async def test_usage_that_cannot_be_stored_lets_no_budget_be_exceeded(
    serve: Serve,
    client: Client,
    clients: Callable[..., Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """MSG-104: clients without a budget continue, and their usage is stored later."""
    monkeypatch.setattr("cc_server.usage_database._LOCK_SECONDS", 0.01)
    monkeypatch.setattr("cc_server.usage.RETRY_SECONDS", 0.01)
    client.answers(priced)
    served = serve(client, clients=clients(alice="tokens_per_day = 1_000", bob=""))
    with closing(sqlite3.connect(tmp_path / "clients.usage.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert (await served.post(token="bob")).status_code == 200
        await eventually(lambda: "could not be stored yet: database is locked" in caplog.text)
        refused = await served.post(token="alice")
        assert (refused.status_code, refused.json()["error"]["type"]) == (503, "api_error")
        assert refused.headers["retry-after"] == "1"
        assert "cannot count the usage of its clients: database is locked" in refused.json()["error"]["message"]
        other.execute("COMMIT")
        # Without another request.
        await eventually(lambda: len(other.execute("SELECT * FROM usage_by_model").fetchall()) == 1)
        assert (await served.post(token="alice")).status_code == 200
        await eventually(lambda: len(other.execute("SELECT * FROM usage_by_model").fetchall()) == 2)
        assert set(other.execute("SELECT client, requests, tokens FROM usage_by_model")) == {
            ("alice", 1, TOKENS),
            ("bob", 1, TOKENS),
        }


@pytest.mark.deaths
async def test_a_locked_database_delays_only_those_with_a_budget(
    serve: Serve,
    several: Client,
    clients: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """MSG-104: health, figures, other clients and streams in progress continue, while SQLite waits for the lock."""
    monkeypatch.setattr("cc_server.usage_database._LOCK_SECONDS", 40)
    monkeypatch.setattr("cc_server.usage._READ_SECONDS", 0.1)
    may_go_on = threading.Event()

    async def answer(body: dict[str, Any]) -> dict[str, Any]:
        if body["max_tokens"] == 1:
            await eventually(may_go_on.is_set)
        return priced(body)

    several.answers(answer)
    served = serve(several, clients=clients(alice="tokens_per_day = 1_000", bob="", root='access = "metrics"'))
    with closing(sqlite3.connect(tmp_path / "clients.usage.sqlite", isolation_level=None)) as other:
        running = asyncio.ensure_future(served.post(token="bob", stream=True, max_tokens=1))
        await eventually(lambda: len(several.api.requests) == 1)
        other.execute("BEGIN EXCLUSIVE")
        async with asyncio.timeout(20):
            for stream in (False, True):
                assert (await served.post(token="bob", stream=stream)).status_code == 200
            refused = await asyncio.gather(*(served.post(token="alice") for _ in range(8)))
            assert {response.status_code for response in refused} == {503}
            async with served.http(token="root") as http:
                assert (await http.get("/healthz")).status_code == (await http.get("/metrics")).status_code == 200
            may_go_on.set()
            assert (await running).text.endswith('{"type":"message_stop"}\n\n')
        other.execute("COMMIT")
        await eventually(
            lambda: [*other.execute("SELECT client, requests, tokens FROM usage_by_model")] == [("bob", 3, 330)]
        )
    assert (await served.post(token="alice")).status_code == 200


async def test_a_database_that_is_deleted_is_noticed(
    serve: Serve, client: Client, clients: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """MSG-104: SQLite itself would continue with a deleted file."""
    client.answers(priced)
    served = serve(client, clients=clients(alice="tokens_per_day = 1_000", bob=""))
    assert (await served.post(token="alice")).status_code == 200
    for name in ("", "-wal", "-shm"):
        (tmp_path / f"clients.usage.sqlite{name}").unlink()
    assert (await served.post(token="bob")).status_code == 200
    await eventually(lambda: "clients.usage.sqlite was deleted or replaced: restart the server" in caplog.text)
    refused = await served.post(token="alice")
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "api_error")
    assert "was deleted or replaced" in refused.json()["error"]["message"]
