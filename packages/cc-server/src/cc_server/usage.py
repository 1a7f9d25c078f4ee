"""Usage: of a request, as the API's counts grow with the message; and by client and UTC day.

The usage of a day is in SQLite, so that it survives a restart and several servers may share it.

Amounts are added in memory, and wait for a `flush()` that succeeds. A power failure can lose the last seconds; the end
of the process loses nothing that was flushed. `flush()` and `today()` wait for SQLite, and are called in one thread at
a time: the ledger's. So a locked or slow database delays only requests that need it, for a bounded time.
"""

import asyncio
import logging
import math
import operator
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar

from cc_convert.internals import open_private

from .clients import check_private

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_SECONDS = 1.0
"""The time after which a failed write is tried again."""

# Another server that writes holds the lock for a millisecond.
_LOCK_SECONDS = 1.0
# A read takes a millisecond; it may have to wait for an attempt to write.
_READ_SECONDS = 3.0
_MOST_TOKENS = 2**53

_SCHEMA = """
CREATE TABLE IF NOT EXISTS usage_by_model (
    day TEXT NOT NULL, client TEXT NOT NULL, model TEXT NOT NULL,
    requests INTEGER NOT NULL, tokens INTEGER NOT NULL, dollars REAL NOT NULL,
    PRIMARY KEY (day, client, model)
) WITHOUT ROWID
"""
_ADD = """
INSERT INTO usage_by_model VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
SET requests = requests + excluded.requests, tokens = tokens + excluded.tokens, dollars = dollars + excluded.dollars
"""
_READ = """
SELECT coalesce(sum(requests), 0), coalesce(sum(tokens), 0), coalesce(sum(dollars), 0.0) FROM usage_by_model
WHERE day = ? AND client = ?
"""
_READ_ALL = "SELECT day, client, model, requests, tokens, dollars FROM usage_by_model WHERE day >= ?"
_WEEK = timedelta(days=6)


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """An amount of usage."""

    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0
    """US dollars by the list prices; infinite after an answer without a price."""

    def __add__(self, other: "UsageTotal") -> "UsageTotal":
        return UsageTotal(self.requests + other.requests, self.tokens + other.tokens, self.dollars + other.dollars)


@dataclass(frozen=True, slots=True)
class Usage:
    """The API's counts, and their price."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    dollars: float = 0.0
    """US dollars by the list prices; infinite if the model has no price."""

    @property
    def all_input(self) -> int:
        """The input tokens, with those read from and written to the cache."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> UsageTotal:
        """The same, with tokens of all kinds in a single number."""
        return UsageTotal(self.requests, self.all_input + self.output, self.dollars)

    def __sub__(self, other: "Usage") -> "Usage":
        dollars = 0.0 if math.isinf(other.dollars) else self.dollars - other.dollars
        return Usage(*map(operator.sub, astuple(self)[:-1], astuple(other)[:-1]), dollars=dollars)


class UsageStore:
    """The usage of all clients, in a database that is created for this user alone; in memory without a path."""

    def __init__(self, path: Path | None = None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path, self._now = path, now
        self._unwritten: list[tuple[str, str, str, UsageTotal]] = []
        try:
            if path is not None:
                _make_private(path)
            # Created in another thread than the one that uses it.
            self._database = sqlite3.connect(path or ":memory:", timeout=_LOCK_SECONDS, check_same_thread=False)
            weakref.finalize(self, self._database.close)
            with self._database:
                # Readers and writers do not wait for each other, and a write does not wait for the disk.
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = NORMAL")
                self._database.execute(_SCHEMA)
                self._database.execute(_READ, ("", ""))
            self._file = self._identity()
        except (OSError, ValueError, sqlite3.Error) as error:
            raise ValueError(
                f"the usage of the clients cannot be stored in {path}: {error}; --usage-file names another place"
            ) from error

    @property
    def has_unwritten(self) -> bool:
        """True if there are amounts that are not in the database yet."""
        return bool(self._unwritten)

    def add(self, client: str, amount: UsageTotal, model: str = "") -> None:
        """Add an amount to a client's usage of a model. May be called in any thread; makes no I/O."""
        # A larger number cannot be written, and would keep all clients' amounts from being written.
        amount = replace(amount, tokens=max(-_MOST_TOKENS, min(amount.tokens, _MOST_TOKENS)))
        self._unwritten.append((self._day(), client, model, amount))

    def flush(self) -> None:
        """Write the added amounts."""
        if not (amounts := [*self._unwritten]):
            return
        self._check_file()
        with self._database:
            rows = ((*place, total.requests, total.tokens, total.dollars) for *place, total in amounts)
            self._database.executemany(_ADD, rows)
        del self._unwritten[: len(amounts)]  # others may have been added at the end

    def today(self, client: str) -> UsageTotal:
        """Return a client's usage in this UTC day, with all added amounts."""
        self._check_file()
        key = (self._day(), client)
        total = UsageTotal(*self._database.execute(_READ, key).fetchone())
        return sum((amount for day, name, _, amount in [*self._unwritten] if (day, name) == key), total)

    def by_model(self) -> list[tuple[str, str, UsageTotal, UsageTotal]]:
        """Return client, model, usage today and usage in the last seven UTC days, the largest first."""
        self._check_file()
        first, today = (self._now().date() - _WEEK).isoformat(), self._day()
        stored = self._database.execute(_READ_ALL, (first,)).fetchall()
        rows = [(day, client, model, UsageTotal(*counts)) for day, client, model, *counts in stored]
        totals: dict[tuple[str, str], tuple[UsageTotal, UsageTotal]] = {}
        for day, client, model, amount in [*rows, *self._unwritten]:
            of_today, of_week = totals.get((client, model), (UsageTotal(), UsageTotal()))
            totals[client, model] = (of_today + amount if day == today else of_today, of_week + amount)
        lines = [(*place, *amounts) for place, amounts in totals.items()]
        return sorted(lines, key=lambda line: -line[3].tokens)

    def day_end(self) -> datetime:
        """Return the end of this UTC day, when budgets begin anew."""
        return datetime.combine(self._now().date() + timedelta(days=1), datetime.min.time(), UTC)

    def seconds_left(self) -> float:
        """Return the seconds to the end of this UTC day."""
        return (self.day_end() - self._now()).total_seconds()

    def _check_file(self) -> None:
        """Check that the file is still the same: SQLite goes on with a deleted file."""
        if self._identity() != self._file:
            raise sqlite3.OperationalError(f"{self._path} was deleted or replaced: restart the server")

    def _identity(self) -> tuple[int, int] | None:
        try:
            facts = None if self._path is None else self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise sqlite3.OperationalError(str(error)) from error
        return None if facts is None else (facts.st_dev, facts.st_ino)

    def _day(self) -> str:
        return self._now().date().isoformat()


class UsageLedger:
    """Reads and writes the usage in a store. Only the store's methods without I/O may be called elsewhere."""

    def __init__(self, store: UsageStore) -> None:
        self.store = store
        self._thread = ThreadPoolExecutor(1, "cc-server-usage")
        self._error = ""
        self._is_closed = False

    def add(self, client: str, amount: UsageTotal, model: str = "") -> None:
        """Add an amount to a client's usage, and begin to write it. May be called in any thread, also after `close()`.

        A failure is logged, and the write repeated until it succeeds.
        """
        self.store.add(client, amount, model)
        if self._error:
            return
        try:
            self._thread.submit(self._write)
        except RuntimeError:  # the interpreter is ending, and has ended the thread
            self.store.flush()

    async def written(self) -> None:
        """Wait until the added amounts are written, or have to wait for the next attempt."""
        while self.store.has_unwritten and not self._error:
            await asyncio.wrap_future(self._thread.submit(self._write))

    async def today(self, client: str) -> UsageTotal:
        """Return a client's usage in this UTC day, with all added amounts."""
        return await self._read(partial(self.store.today, client))

    async def by_model(self) -> list[tuple[str, str, UsageTotal, UsageTotal]]:
        """Return the usage of all clients and models, as the store does."""
        return await self._read(self.store.by_model)

    async def _read(self, read: Callable[[], T]) -> T:
        if not (problem := self._error):
            try:
                async with asyncio.timeout(_READ_SECONDS):
                    value = await asyncio.wrap_future(self._thread.submit(read))
            except TimeoutError as error:
                raise sqlite3.OperationalError(f"the database did not answer within {_READ_SECONDS:g} s") from error
            if not (problem := self._error):
                return value
        raise sqlite3.OperationalError(problem)

    async def close(self) -> None:
        """Write the added amounts, in one attempt. From now on nothing is tried again."""
        self._is_closed, self._error = True, ""
        await self.written()

    def _write(self, is_retry: bool = False) -> None:
        if self._error and not is_retry:
            return
        try:
            self.store.flush()
        except Exception as error:
            if not self._error:
                logger.error("The usage of the clients could not be stored yet: %s", error)
            self._error = str(error) or repr(error)
            if not self._is_closed:
                retry = threading.Timer(RETRY_SECONDS, self._thread.submit, (self._write, True))
                retry.daemon = True
                retry.start()
            return
        self._error = ""
        if self.store.has_unwritten:  # `add()` still saw the error
            self._thread.submit(self._write)


def _make_private(path: Path) -> None:
    """Create the file for this user alone, and refuse a file that others can use. SQLite's own files get the mode."""
    with suppress(FileNotFoundError):
        check_private(os.stat(path).st_mode)
    os.close(open_private(path, os.O_RDWR | os.O_CREAT))
