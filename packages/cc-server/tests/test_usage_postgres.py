"""Servers on several machines count in one PostgreSQL database, each amount once."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from cc_server.usage import UsageStore, UsageTotal
from cc_server.usage_database import PostgresDatabase, UsageError, open_database
from postgres import Postgres, is_installed, postgres
from warm_clients.client import Client

from .conftest import Serve

pytestmark = [
    pytest.mark.worlds,
    pytest.mark.skipif(not is_installed(), reason="PostgreSQL is not installed: apt-get install postgresql"),
]
ONE = UsageTotal(requests=1, tokens=10, dollars=0.5)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


@pytest.fixture(autouse=True)
def empty(server: Postgres) -> None:
    with psycopg.connect(server.url) as connection:
        connection.execute("DROP TABLE IF EXISTS usage_by_model, usage_writers")


def test_servers_that_start_and_write_at_once_lose_nothing(server: Postgres) -> None:
    """MSG-176"""
    names = [f"client{number}" for number in range(5)]

    def work(number: int) -> None:
        store = UsageStore(open_database(server.url))
        for name in names if number % 2 else names[::-1]:
            for _ in range(20):
                store.add(name, ONE, "model")
                store.flush()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    store = UsageStore(open_database(server.url))
    assert {name: store.today(name) for name in names} == dict.fromkeys(names, UsageTotal(160, 1600, 80.0))
    assert store.today("client") == UsageTotal()


def test_amounts_survive_the_databases_end_and_count_once(server: Postgres) -> None:
    """MSG-176"""
    store = UsageStore(open_database(server.url))
    store.add("alice", ONE)
    store.flush()
    server.stop()
    try:
        store.add("alice", ONE)
        for _ in range(2):
            with pytest.raises(UsageError, match="Connection refused"):
                store.flush()
    finally:
        server.start()
    store.add("alice", ONE)
    store.flush()
    assert store.today("alice") == UsageTotal(3, 30, 1.5)


def test_a_commit_without_a_reply_counts_once(server: Postgres) -> None:
    """MSG-176: the rows come again, with later ones."""
    database = PostgresDatabase(server.url)
    rows = [("2026-11-22", "alice", "opus", 1, 10, 0.5), ("2026-11-22", "alice", "haiku", 1, 20, 0.5)]
    database.add(rows)
    database._added = 0  # pyright: ignore[reportPrivateUsage]
    later = ("2026-11-22", "alice", "opus", 1, 40, 0.5)
    database.add([*rows, later])
    assert sorted(row[4] for row in database.read("2026-11-22", "alice")) == [20, 50]


def test_a_locked_table_delays_for_a_bounded_time(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-104"""
    monkeypatch.setattr("cc_server.usage_database._LOCK_SECONDS", 0.05)
    store = UsageStore(open_database(server.url))
    with psycopg.connect(server.url) as other:
        other.execute("LOCK TABLE usage_by_model")
        store.add("alice", ONE)
        with pytest.raises(UsageError, match="statement timeout"):
            store.flush()
    store.flush()
    assert store.today("alice") == ONE


def test_a_wrong_password_is_named_and_not_printed(server: Postgres) -> None:
    """MSG-176"""
    with pytest.raises(ValueError, match=r"stored in PostgreSQL: .*password authentication failed") as caught:
        open_database(server.url.replace("p%2Fw", "wrong"))
    assert "wrong" not in str(caught.value)


async def test_a_budget_holds_over_several_servers(
    server: Postgres, serve: Serve, client: Client, clients_file: Callable[[str], Path]
) -> None:
    """MSG-176: the request that crosses the budget is answered, the next is refused by every server."""
    client.answers(lambda _: {"content": "Fine.", "usage": {"input_tokens": 60, "output_tokens": 40}})
    path = clients_file('[clients.alice]\ntoken = "alice"\ntokens_per_day = 450\n')
    servers = [serve(client, clients=path, usage_store=server.url) for _ in range(3)]
    for number in range(5):
        assert (await servers[number % 3].post(token="alice")).status_code == 200
    refused = await asyncio.gather(*(each.post(token="alice") for each in servers))
    assert {answer.status_code for answer in refused} == {429}
    assert "The client alice has used 500 of 450 tokens" in refused[0].json()["error"]["message"]
