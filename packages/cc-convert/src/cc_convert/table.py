"""Rows as a table: columns, and the transfer to DuckDB."""

import csv
import os
import tempfile
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any, get_type_hints

from .extras import need
from .log_files.private_files import open_private
from .log_files.rows import Row

_TYPES: dict[object, tuple[str, str]] = {
    int: ("integer", "bigint"), bool: ("integer", "boolean"), float | None: ("real", "double"),
}  # fmt: skip

COLUMNS: dict[str, tuple[str, str]] = {
    name: ("text", "timestamp") if name == "time" else _TYPES.get(kind, ("text", "varchar"))
    for name, kind in get_type_hints(Row).items()
    if name != "steps"
}
"""The columns, with their types in SQLite and in DuckDB. Times are in UTC."""


def values_of(row: Row) -> tuple[Any, ...]:
    """Return a row's values in column order, with readable times."""
    return tuple(_value(name, getattr(row, name)) for name in COLUMNS)


def _value(name: str, value: Any) -> Any:
    if name == "time":
        return None if value is None else datetime.fromtimestamp(value, UTC).isoformat(timespec="milliseconds")
    return ",".join(value) if name == "tools" else value


@contextmanager
def duckdb_with(rows: Iterable[Row], purpose: str) -> Generator[Any]:
    """Open a DuckDB connection with the rows as the table `requests`."""
    duckdb = need("duckdb", purpose)
    # Through a file, much faster than single values; only this user can read it.
    with tempfile.TemporaryDirectory() as folder, closing(duckdb.connect(":memory:")) as connection:
        path = os.path.join(folder, "rows.csv")
        with open(path, "w", encoding="utf-8", errors="replace", newline="", opener=open_private) as file:
            csv.writer(file).writerows(map(values_of, rows))
        columns = {name: kind.upper() for name, (_, kind) in COLUMNS.items()}
        connection.execute(
            "create table requests as select * from "
            f"read_csv(?, header=false, columns={columns!r}, quote='\"', escape='\"', auto_detect=false, "
            "strict_mode=false, nullstr='', allow_quoted_nulls=false)",
            [path],
        )
        yield connection
