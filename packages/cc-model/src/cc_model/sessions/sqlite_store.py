"""`SQLiteSessionStore`: Claude Code sessions in an SQLite file, with the SDK interface for stores."""

import asyncio
import json
import os
import sqlite3
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

from cc_convert.internals import open_private

T = TypeVar("T")

_TABLES = """
create table if not exists entries (
    project text, session text, subpath text, number integer, uuid text, entry text,
    primary key (project, session, subpath, number)
);
create unique index if not exists entry_uuids on entries (project, session, subpath, uuid) where uuid is not null;
create table if not exists sessions (
    project text, session text, mtime integer, summary text, primary key (project, session)
);
"""
_LOCK_SECONDS = 30.0


class SQLiteSessionStore(SessionStore):
    """Sessions in an SQLite file, for the option `session_store` of claude-agent-sdk and cc-session.

    Threads, event loops and processes may use a file at once. An entry whose uuid is there already is not added again.

    Args:
        path: The file, which is made if it does not exist, for this user alone; `":memory:"` for a store that ends
            with the object.

    Raises:
        OSError: The file cannot be opened, is a link or no regular file, or belongs to another user.
    """

    def __init__(self, path: str | Path) -> None:
        if str(path) != ":memory:":
            os.close(open_private(path, os.O_RDWR | os.O_CREAT))
        self._database = sqlite3.connect(path, timeout=_LOCK_SECONDS, check_same_thread=False, isolation_level=None)
        weakref.finalize(self, self._database.close)
        self._database.executescript(_TABLES)
        self._lock = Lock()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries to the end of a session, or of a sub-agent's conversation."""
        if entries:
            await asyncio.to_thread(self._transact, lambda database: _append(database, key, entries))

    async def create(self, key: SessionKey, entries: list[SessionStoreEntry]) -> bool:
        """Add a session in one step; return false if the store has it already."""

        def work(database: sqlite3.Connection) -> bool:
            query = "select 1 from entries where project = ? and session = ? and subpath = ?"
            if database.execute(query, _columns(key)).fetchone():
                return False
            _append(database, key, entries)
            return True

        return await asyncio.to_thread(self._transact, work)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all entries in order, or None if there are none."""
        query = "select entry from entries where project = ? and session = ? and subpath = ? order by number"
        rows = await self._select(query, *_columns(key))
        return [json.loads(entry) for (entry,) in rows] or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return a project's sessions, with the times of their last changes."""
        rows = await self._select("select session, mtime from sessions where project = ?", project_key)
        return [{"session_id": session, "mtime": mtime} for session, mtime in rows]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the SDK summaries of a project's sessions."""
        rows = await self._select("select mtime, summary from sessions where project = ?", project_key)
        return [cast(SessionSummaryEntry, {**json.loads(summary), "mtime": mtime}) for mtime, summary in rows]

    async def delete(self, key: SessionKey) -> None:
        """Delete a session with its sub-agents, or with a `subpath` only that; nothing happens if it does not exist."""
        await asyncio.to_thread(self._transact, lambda database: _delete(database, key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session's sub-agents."""
        query = "select distinct subpath from entries where project = ? and session = ? and subpath != ''"
        rows = await self._select(query, key["project_key"], key["session_id"])
        return [subpath for (subpath,) in rows]

    def close(self) -> None:
        """Close the file. Idempotent."""
        with self._lock:
            self._database.close()

    async def _select(self, query: str, *values: str) -> list[Any]:
        return await asyncio.to_thread(self._transact, lambda database: database.execute(query, values).fetchall())

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction; only in a thread, since another process may hold the file lock."""
        with self._lock, self._database as database:
            database.execute("begin immediate")
            return work(database)


def _append(database: sqlite3.Connection, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
    columns = _columns(key)
    select = "select coalesce(max(number), 0) from entries where project = ? and session = ? and subpath = ?"
    [last_number] = database.execute(select, columns).fetchone()
    rows = (
        (*columns, last_number + number, entry.get("uuid"), json.dumps(entry))
        for number, entry in enumerate(entries, 1)
    )
    database.executemany("insert or ignore into entries values (?, ?, ?, ?, ?, ?)", rows)
    if columns[2]:
        return
    row = database.execute("select mtime, summary from sessions where project = ? and session = ?", columns[:2])
    mtime, summary = row.fetchone() or (0, "null")
    folded = fold_session_summary(json.loads(summary), key, entries)
    # Later than the change before, also if the clock stands still or goes back.
    mtime = max(time.time_ns() // 1_000_000, mtime + 1)
    database.execute("insert or replace into sessions values (?, ?, ?, ?)", (*columns[:2], mtime, json.dumps(folded)))


def _delete(database: sqlite3.Connection, key: SessionKey) -> None:
    project, session, subpath = _columns(key)
    if subpath:
        where = "project = ? and session = ? and subpath = ?"
        database.execute(f"delete from entries where {where}", (project, session, subpath))
        return
    for table in ("entries", "sessions"):
        database.execute(f"delete from {table} where project = ? and session = ?", (project, session))


def _columns(key: SessionKey) -> tuple[str, str, str]:
    return key["project_key"], key["session_id"], key.get("subpath", "")
