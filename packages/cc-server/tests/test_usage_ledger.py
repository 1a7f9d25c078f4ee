"""Usage is stored whenever it comes: while the database is busy, and when the server or the interpreter has ended."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cc_server.usage import UsageLedger, UsageStore, UsageTotal
from cc_server.usage_database import UsageError, open_database
from warm_clients.api_data import BODY, MESSAGES
from warm_clients.client import Client
from warm_clients.waiting import eventually

from .served import Served

ONE = UsageTotal(requests=1, tokens=10, dollars=0.5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "usage.sqlite"


@pytest.fixture
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """Another connection to the database, which has no tables yet."""
    path.touch(0o600)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        yield database


def requests(database: sqlite3.Connection) -> int:
    return sum(row[0] for row in database.execute("SELECT requests FROM usage_by_model"))


async def test_usage_counts_as_written_when_it_is_in_the_database(path: Path, database: sqlite3.Connection) -> None:
    """MSG-103. Not when the write has begun."""
    ledger = UsageLedger(UsageStore(open_database(path)))
    database.execute("BEGIN EXCLUSIVE")
    ledger.add("alice", ONE)
    waiting = asyncio.ensure_future(ledger.written())
    done, _ = await asyncio.wait({waiting}, timeout=0.1)
    assert not done
    assert ledger.store.has_unwritten
    database.execute("COMMIT")
    await waiting
    assert requests(database) == 1
    await ledger.close()


async def test_a_failed_write_is_repeated_until_the_ledger_is_closed(
    path: Path, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-104. Amounts that come meanwhile are written, too, and no timer stays."""
    monkeypatch.setattr("cc_server.usage_database._LOCK_SECONDS", 0.01)
    monkeypatch.setattr("cc_server.usage.RETRY_SECONDS", 0.01)
    ledger = UsageLedger(UsageStore(open_database(path)))
    for number in (3, 6):
        database.execute("BEGIN EXCLUSIVE")
        for _ in range(3):
            ledger.add("alice", ONE)
        await ledger.written()
        with pytest.raises(UsageError, match="locked"):
            await ledger.today("alice")
        database.execute("COMMIT")
        await eventually(lambda number=number: requests(database) == number)
    database.execute("BEGIN EXCLUSIVE")
    ledger.add("alice", ONE)
    await ledger.close()
    await eventually(lambda: not any(isinstance(thread, threading.Timer) for thread in threading.enumerate()))


async def test_usage_that_comes_after_the_end_of_the_server_is_stored(path: Path, database: sqlite3.Connection) -> None:
    """MSG-104. A request can end after the server's event loop if the transport stays open."""
    ledger = UsageLedger(UsageStore(open_database(path)))
    await asyncio.to_thread(asyncio.run, ledger.close())
    ledger.add("alice", ONE)
    await eventually(lambda: requests(database) == 1)


@pytest.mark.deaths
def test_usage_that_comes_when_the_interpreter_ends_is_stored(path: Path, database: sqlite3.Connection) -> None:
    """MSG-104. The processes, with their answers in progress, are ended after all threads."""
    program = f"""
import atexit
from cc_server.usage import UsageLedger, UsageStore, UsageTotal
from cc_server.usage_database import open_database
ledger = UsageLedger(UsageStore(open_database({str(path)!r})))
atexit.register(ledger.add, "alice", UsageTotal(requests=1))
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    assert requests(database) == 1


@pytest.mark.deaths
async def test_an_answer_that_the_end_of_the_server_breaks_off_is_counted(
    slow_client: Client, clients_file: Callable[[str], Path], tmp_path: Path
) -> None:
    """MSG-103. The output is counted after the server's event loop has ended."""
    slow_client.answers(lambda _: {"content": "word " * 1000, "usage": {"input_tokens": 60, "output_tokens": 1000}})
    clients = clients_file('[clients.alice]\ntoken = "alice"\ntokens_per_day = 10_000\n')
    with Served(slow_client.api, slow_client.transport, clients=clients) as served:
        http = served.http(token="alice")
        request = http.build_request("POST", MESSAGES, json={**BODY, "stream": True})
        response = await http.send(request, stream=True)
    await slow_client.settled()
    with closing(sqlite3.connect(tmp_path / "clients.usage.sqlite")) as database:
        await eventually(
            lambda: 60 + 20 < database.execute("SELECT sum(tokens) FROM usage_by_model").fetchone()[0] < 1000
        )
    await response.aclose()
    await http.aclose()
