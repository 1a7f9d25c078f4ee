"""Usage by client and UTC day, in SQLite, so that it survives a restart and several servers may share it.

Amounts are added in any thread, in memory, and written by the next `flush()`. An amount that could not be written stays
for the one after. A power failure can lose the last seconds; the end of the process loses none that was flushed.
`flush()` and `today()` wait for SQLite, and are called in one thread at a time.
"""

import os
import sqlite3
import stat
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

__all__ = ["UsageStore", "UsageTotal", "seconds_to_midnight", "utc_now"]

# Another server that writes holds the lock for a millisecond.
_LOCK_SECONDS = 1.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS usage (
    day TEXT NOT NULL, client TEXT NOT NULL, requests INTEGER NOT NULL, tokens INTEGER NOT NULL, dollars REAL NOT NULL,
    PRIMARY KEY (day, client)
) WITHOUT ROWID
"""
_ADD = """
INSERT INTO usage VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
SET requests = requests + excluded.requests, tokens = tokens + excluded.tokens, dollars = dollars + excluded.dollars
"""
_READ = "SELECT requests, tokens, dollars FROM usage WHERE day = ? AND client = ?"


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """An amount of usage."""

    requests: int = 0
    tokens: int = 0
    dollars: float = 0.0
    """US dollars by the list prices; infinite after an answer without a price."""

    def __add__(self, other: "UsageTotal") -> "UsageTotal":
        return UsageTotal(self.requests + other.requests, self.tokens + other.tokens, self.dollars + other.dollars)


def utc_now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def seconds_to_midnight(now: datetime) -> float:
    """Return the seconds to the end of the UTC day, when budgets begin anew."""
    midnight = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), UTC)
    return (midnight - now).total_seconds()


class UsageStore:
    """The usage of all clients.

    Args:
        path: The database, which is created if it does not exist, for this user alone; in memory if None.
        now: The clock.
    """

    def __init__(self, path: Path | None = None, now: Callable[[], datetime] = utc_now) -> None:
        self._path, self._now = path, now
        self._lock = threading.Lock()
        self._unwritten: dict[tuple[str, str], UsageTotal] = {}
        try:
            if path is not None:
                _make_private(path)
            # Created in another thread than that in which it is used.
            self._database = sqlite3.connect(path or ":memory:", timeout=_LOCK_SECONDS, check_same_thread=False)
            weakref.finalize(self, self._database.close)
            with self._database:
                # Readers and writers do not wait for each other, and a write does not wait for the disk.
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = NORMAL")
                self._database.execute(_SCHEMA)
                self._database.execute(_READ, ("", ""))
            self._file = self._identity()
        except (OSError, sqlite3.Error) as error:
            raise ValueError(
                f"the usage of the clients cannot be stored in {path}: {error}; --usage-file names another place"
            ) from error

    @property
    def has_unwritten(self) -> bool:
        """True if there are amounts for the next `flush()`."""
        return bool(self._unwritten)

    def add(self, client: str, amount: UsageTotal) -> None:
        """Add an amount to the usage of a client. May be called in any thread; makes no I/O."""
        key = (self._day(), client)
        with self._lock:
            self._unwritten[key] = self._unwritten.get(key, UsageTotal()) + amount

    def flush(self) -> None:
        """Write the added amounts."""
        self._check_file()
        with self._lock:
            amounts, self._unwritten = self._unwritten, {}
        if not amounts:
            return
        rows = [(*key, amount.requests, amount.tokens, amount.dollars) for key, amount in amounts.items()]
        try:
            with self._database:
                self._database.executemany(_ADD, rows)
        except BaseException:
            with self._lock:
                for key, amount in amounts.items():
                    self._unwritten[key] = self._unwritten.get(key, UsageTotal()) + amount
            raise

    def today(self, client: str) -> UsageTotal:
        """Return the usage of a client in this UTC day, with all amounts that were added."""
        self._check_file()
        key = (self._day(), client)
        row = self._database.execute(_READ, key).fetchone()
        with self._lock:
            return UsageTotal(*(row or ())) + self._unwritten.get(key, UsageTotal())

    def seconds_left(self) -> float:
        """Return the seconds to the end of this UTC day."""
        return seconds_to_midnight(self._now())

    def _check_file(self) -> None:
        """Check that the file is still the one that was opened: SQLite goes on with a deleted one."""
        if self._identity() != self._file:
            raise sqlite3.OperationalError(f"{self._path} was deleted or replaced: restart the server")

    def _identity(self) -> tuple[int, int] | None:
        try:
            facts = None if self._path is None else self._path.stat()
        except FileNotFoundError:
            facts = None
        except OSError as error:
            raise sqlite3.OperationalError(str(error)) from error
        return None if facts is None else (facts.st_dev, facts.st_ino)

    def _day(self) -> str:
        return self._now().date().isoformat()


def _make_private(path: Path) -> None:
    """Create the file for this user alone, and refuse one that others can use; SQLite's own files get its mode."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise PermissionError(f"other users have access to it (mode {mode:o}): chmod 600 takes it away")
