"""`cc-convert sql`: query the rows with SQL."""

import sqlite3
import sys
from argparse import Namespace
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, count
from typing import Any

from ..log_files.rows import Row
from ..table import COLUMNS, duckdb_with, values_of
from .inputs import chosen_prices, load_logs, mention, overview
from .output import RefusedError, write_records


def run(options: Namespace) -> int:
    """Run a query."""
    logs = load_logs(options)
    rows = logs.priced(chosen_prices(options), options.cost)
    open_database = duckdb_with if options.engine == "duckdb" else _sqlite_with
    with open_database(rows, f"The engine {options.engine}") as database:
        try:
            cursor = database.execute(options.query)
            names = _unique([column[0] for column in cursor.description or ()])
            records = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
        except Exception as error:  # DuckDB's error class is untyped
            raise RefusedError(f"SQL: {error}") from None
    write_records(sys.stdout, records, options.format, names)
    return mention(overview(logs, rows))


@contextmanager
def _sqlite_with(rows: list[Row], _: str) -> Generator[Any]:
    with closing(sqlite3.connect(":memory:")) as database:
        columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
        database.execute(f"create table requests ({columns})")
        marks = ", ".join("?" for _ in COLUMNS)
        database.executemany(f"insert into requests values ({marks})", map(values_of, rows))
        yield database


def _unique(names: Sequence[str]) -> list[str]:
    """Return column names without repetition: a second `n` is `n_2`."""
    columns: list[str] = []
    for name in names:
        numbers = (f"{name}_{number}" for number in count(2))
        columns.append(next(candidate for candidate in chain([name], numbers) if candidate not in columns))
    return columns
