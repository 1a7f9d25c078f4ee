"""The clients' usage is counted by UTC day, without loss, and survives a restart."""

import os
import sqlite3
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cc_server.usage import UsageStore, UsageTotal
from cc_server.usage_database import UsageError, open_database

ONE = UsageTotal(requests=1, tokens=10, dollars=0.5)


def test_no_update_is_lost_between_threads_and_servers(tmp_path: Path) -> None:
    """MSG-104"""
    path = tmp_path / "usage.sqlite"
    stores = [UsageStore(open_database(path)) for _ in range(2)]

    def work(number: int) -> None:
        stores[number % 2].add("alice", ONE)

    with ThreadPoolExecutor(8) as threads:
        for number in range(400):
            threads.submit(work, number)
            if number % 50 == 0:
                stores[0].flush()
                stores[1].flush()
    for store in stores:
        store.flush()
    assert stores[0].today("alice") == stores[1].today("alice") == UsageTotal(400, 4000, 200.0)
    assert stores[0].today("bob") == UsageTotal()


def test_the_usage_survives_a_restart_and_begins_anew_at_midnight(tmp_path: Path) -> None:
    """MSG-104"""
    now = datetime(2026, 11, 22, 23, 59, 30, tzinfo=UTC)
    path = tmp_path / "usage.sqlite"
    store = UsageStore(open_database(path), lambda: now)
    store.add("alice", ONE)
    store.flush()
    del store
    store = UsageStore(open_database(path), lambda: now)
    assert (store.today("alice"), store.seconds_left()) == (ONE, 30)
    store.add("alice", ONE)  # usage for this day, although written on the next
    assert store.today("alice") == ONE + ONE
    now += timedelta(seconds=31)
    store.flush()
    assert not store.has_unwritten
    assert store.today("alice") == UsageTotal()
    assert store.seconds_left() == 24 * 3600 - 1
    now -= timedelta(seconds=31)
    assert store.today("alice") == ONE + ONE


def test_an_amount_that_could_not_be_written_stays_for_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MSG-104"""
    monkeypatch.setattr("cc_server.usage_database._LOCK_SECONDS", 0.01)
    path = tmp_path / "usage.sqlite"
    store = UsageStore(open_database(path))
    with sqlite3.connect(path) as other:
        other.execute("BEGIN EXCLUSIVE")
        store.add("alice", ONE)
        for _ in range(2):
            with pytest.raises(UsageError, match="locked"):
                store.flush()
        assert (store.today("alice"), store.has_unwritten) == (ONE, True)
    other.close()
    store.flush()
    assert (store.today("alice"), store.has_unwritten) == (ONE, False)


def test_the_database_is_private_and_an_open_one_is_refused(tmp_path: Path) -> None:
    """MSG-104"""
    path = tmp_path / "usage.sqlite"
    before = os.umask(0)
    try:
        store = UsageStore(open_database(path))
        store.add("alice", ONE)
        store.flush()
        assert [stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()] == [0o600] * 3
    finally:
        os.umask(before)
    path.chmod(0o644)
    with pytest.raises(ValueError, match=r"mode 644.*chmod 600"):
        UsageStore(open_database(path))


@pytest.mark.parametrize("content", [None, b"no database" * 100])
def test_a_database_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "none" / "usage.sqlite" if content is None else tmp_path / "usage.sqlite"
    if content is not None:
        path.touch(0o600)
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot be stored in .*usage\.sqlite"):
        UsageStore(open_database(path))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://cc:sec@ret@db/usage", "the URL is not valid: write special characters"),
        ("postgres://cc:se%ret@db/usage", "the URL is not valid"),
        ("postgresql://cc:secret@127.0.0.1:9/usage", "Connection refused"),
    ],
)
def test_an_unusable_postgresql_is_refused_without_its_password(url: str, message: str) -> None:
    """MSG-176"""
    with pytest.raises(ValueError, match=f"stored in PostgreSQL: .*{message}.*--usage-store") as caught:
        open_database(url)
    assert "ret" not in str(caught.value)


def test_without_the_extra_postgresql_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """MSG-176"""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ValueError, match=r"pip install 'cc-server\[postgres\]'"):
        open_database("postgresql://cc@db/usage")
