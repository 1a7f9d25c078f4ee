"""The databases with the usage: SQLite for the servers of one machine, PostgreSQL for those of several.

A database adds rows and returns rows, in one thread at a time. It waits for a bounded time, and raises `UsageError`.
"""

import os
import secrets
import sqlite3
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString, Protocol, TypeVar

from cc_convert.internals import open_private

from .clients import check_private

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

Row = tuple[str, str, str, int, int, float]
"""Day, client, model, requests, tokens and dollars."""

# Another server that writes holds the lock for a millisecond.
_LOCK_SECONDS = 1.0

# Both databases have the same table and statements.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS usage_by_model (
    day TEXT NOT NULL, client TEXT NOT NULL, model TEXT NOT NULL,
    requests BIGINT NOT NULL, tokens BIGINT NOT NULL, dollars DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (day, client, model)
)
"""
_ADD = """
INSERT INTO usage_by_model VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (day, client, model) DO UPDATE SET
requests = usage_by_model.requests + excluded.requests, tokens = usage_by_model.tokens + excluded.tokens,
dollars = usage_by_model.dollars + excluded.dollars
"""
_READ_DAYS = "SELECT day, client, model, requests, tokens, dollars FROM usage_by_model WHERE day >= ?"
_READ_DAY = "SELECT day, client, model, requests, tokens, dollars FROM usage_by_model WHERE day = ? AND client = ?"


class UsageError(Exception):
    """The usage could not be read or written now."""


class UsageDatabase(Protocol):
    """Holds amounts by day, client and model."""

    def add(self, rows: Sequence[Row]) -> None:
        """Add all rows or none. After an error the caller repeats the rows, with later ones after them."""
        ...

    def read(self, day: str, client: str = "") -> list[Row]:
        """Return a client's rows of a day, or the rows of all clients from a day on."""
        ...


def open_database(place: str | Path | None) -> UsageDatabase:
    """Open the database at a path or at a PostgreSQL URL, with its table; without a place in memory.

    Raises:
        ValueError: The database cannot be used, or the extra `postgres` is missing.
    """
    try:
        if is_url(place):
            return PostgresDatabase(str(place))
        return SqliteDatabase(None if place is None else Path(place))
    except (OSError, ValueError, UsageError) as error:
        # A URL may have a password.
        where = "PostgreSQL" if is_url(place) else place
        advice = "--usage-store names another place"
        raise ValueError(f"the usage of the clients cannot be stored in {where}: {error}; {advice}") from error


def is_url(place: str | Path | None) -> bool:
    """Return true if a place is the URL of a PostgreSQL database."""
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))


class SqliteDatabase:
    """A file that is created for this user alone; or a database in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        if path is not None:
            _make_private(path)
        with self._errors():
            # Created in another thread than the one that uses it.
            self._database = sqlite3.connect(path or ":memory:", timeout=_LOCK_SECONDS, check_same_thread=False)
            weakref.finalize(self, self._database.close)
            with self._database:
                # Readers and writers do not wait for each other, and a write does not wait for the disk.
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = NORMAL")
                self._database.execute(f"{_SCHEMA} WITHOUT ROWID")
                self._database.execute(_READ_DAYS, ("",))
        self._file = self._identity()

    def add(self, rows: Sequence[Row]) -> None:
        """Add all rows or none."""
        with self._errors():
            self._check_file()
            with self._database:
                self._database.executemany(_ADD, rows)

    def read(self, day: str, client: str = "") -> list[Row]:
        """Return a client's rows of a day, or the rows of all clients from a day on."""
        with self._errors():
            self._check_file()
            return self._database.execute(*_query(day, client)).fetchall()

    @contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise UsageError(str(error)) from error

    def _check_file(self) -> None:
        """Check that the file is still the same: SQLite goes on with a deleted file."""
        if self._identity() != self._file:
            raise UsageError(f"{self._path} was deleted or replaced: restart the server")

    def _identity(self) -> tuple[int, int] | None:
        try:
            facts = None if self._path is None else self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UsageError(str(error)) from error
        return None if facts is None else (facts.st_dev, facts.st_ino)


class PostgresDatabase:
    """A PostgreSQL database that servers on several machines share.

    A commit whose reply is lost may have happened. So each writer has a row with the number of rows that it has added,
    in the same transaction, and adds none of them a second time.
    """

    def __init__(self, url: str) -> None:
        try:
            from psycopg import ProgrammingError, conninfo
        except ImportError as error:
            raise ValueError(f"{error}: pip install 'cc-server[postgres]'") from error
        try:
            conninfo.conninfo_to_dict(url)
            is_valid = url.count("@") < 2  # else libpq takes a part of the password for the host, and prints it
        except ProgrammingError:
            is_valid = False
        if not is_valid:
            raise ValueError("the URL is not valid: write special characters of the password as %40 for @, and so on")
        self._url = url
        self._writer = secrets.token_hex(8)
        self._added = 0
        self._connection: psycopg.Connection[Any] | None = None
        self._close: Callable[[], object] = lambda: None
        self._run(self._create)

    def add(self, rows: Sequence[Row]) -> None:
        """Add all rows or none, and a repeated row once."""

        def work(connection: "psycopg.Connection[Any]") -> None:
            with connection.transaction(), connection.cursor() as cursor:
                query = "SELECT added FROM usage_writers WHERE writer = %s"
                if (found := cursor.execute(query, (self._writer,)).fetchone()) is None:
                    raise UsageError("this server is missing in usage_writers: restart it")
                # In one order, so that no two servers wait for each other.
                cursor.executemany(_for_postgres(_ADD), sorted(rows[found[0] - self._added :]))
                query = "UPDATE usage_writers SET added = %s WHERE writer = %s"
                cursor.execute(query, (self._added + len(rows), self._writer))

        self._run(work)
        self._added += len(rows)

    def read(self, day: str, client: str = "") -> list[Row]:
        """Return a client's rows of a day, or the rows of all clients from a day on."""
        statement, values = _query(day, client)
        return self._run(lambda connection: connection.execute(_for_postgres(statement), values).fetchall())

    def _create(self, connection: "psycopg.Connection[Any]") -> None:
        with connection.transaction():
            # Two servers that create one table at the same time: the second would fail.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('usage_by_model'))")
            connection.execute(_SCHEMA)
            connection.execute("CREATE TABLE IF NOT EXISTS usage_writers (writer TEXT PRIMARY KEY, added BIGINT)")
            connection.execute("INSERT INTO usage_writers VALUES (%s, 0)", (self._writer,))

    def _run(self, work: "Callable[[psycopg.Connection[Any]], T]") -> T:
        """Call `work` with the open connection; if that has been lost since the last use, with a new one."""
        import psycopg

        try:
            if self._connection is not None:
                try:
                    return work(self._connection)
                except psycopg.OperationalError:
                    if not self._connection.closed:
                        raise
            self._connection = self._connect()
            return work(self._connection)
        except psycopg.Error as error:
            self._close()  # the next attempt may find another server, after a failover
            raise UsageError(" ".join(str(error).split())) from error

    def _connect(self) -> "psycopg.Connection[Any]":
        import psycopg

        # A machine that is gone answers nothing, not even an error: each wait has an end.
        connection = psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=2,
            tcp_user_timeout=2000,
            keepalives_idle=2,
            keepalives_interval=1,
            keepalives_count=2,
            prepare_threshold=None,  # poolers between mix the connections of several servers
            application_name="cc-server",
        )
        self._close()
        self._close = weakref.finalize(self, connection.close)
        milliseconds = str(round(_LOCK_SECONDS * 1000))
        connection.execute("SELECT set_config('statement_timeout', %s, false)", (milliseconds,))
        return connection


def _query(day: str, client: str) -> tuple[LiteralString, tuple[str, ...]]:
    """Return statement and values for `read()`. Both use the table key, since every request of a client reads."""
    return (_READ_DAY, (day, client)) if client else (_READ_DAYS, (day,))


def _for_postgres(statement: LiteralString) -> LiteralString:
    return statement.replace("?", "%s")


def _make_private(path: Path) -> None:
    """Create the file for this user alone, and refuse a file that others can use. SQLite's own files get the mode."""
    with suppress(FileNotFoundError):
        check_private(os.stat(path).st_mode)
    os.close(open_private(path, os.O_RDWR | os.O_CREAT))
