"""`cc-convert sql`: query the rows with SQL."""

import sqlite3
import sys
from argparse import Namespace
from typing import Any

from ..report.filters import Filter
from ..rows import Row
from ..table import COLUMNS, duckdb_with, values_of
from .inputs import chosen_prices, load_logs, mention, overview, with_costs
from .output import RefusedError, write_records


def run(options: Namespace) -> int:
    """Run one query."""
    logs = load_logs(options)
    rows = Filter().of(logs.priced(chosen_prices(options), options.cost), lambda row: row.time)
    ask = _duckdb if options.engine == "duckdb" else _sqlite
    names, found = ask(rows, options.query)
    records = [dict(zip(names, values, strict=True)) for values in found]
    write_records(sys.stdout, records, options.format, names)
    return mention(overview(logs, with_costs(rows)))


def _sqlite(rows: list[Row], query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    with sqlite3.connect(":memory:") as database:
        columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
        database.execute(f"create table requests ({columns})")
        marks = ", ".join("?" for _ in COLUMNS)
        database.executemany(f"insert into requests values ({marks})", map(values_of, rows))
        try:
            cursor = database.execute(query)
        except sqlite3.Error as error:
            raise RefusedError(f"SQL: {error}") from None
        return [column[0] for column in cursor.description or ()], cursor.fetchall()


def _duckdb(rows: list[Row], query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    with duckdb_with(rows, "The engine duckdb") as database:
        try:
            cursor = database.execute(query)
        except Exception as error:  # DuckDB's error class, which is untyped
            raise RefusedError(f"SQL: {error}") from None
        return [column[0] for column in cursor.description or ()], cursor.fetchall()
