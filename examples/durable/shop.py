"""A shop with a database, in place of your own systems, which all workers can reach."""

import os
import sqlite3
from contextlib import closing

_TABLES = """
    CREATE TABLE IF NOT EXISTS calls (tool TEXT, process INTEGER);
    CREATE TABLE IF NOT EXISTS refunds (key TEXT PRIMARY KEY, number INTEGER);
"""


def note_call(tool: str) -> None:
    """Record a tool call, to show later which calls were repeated."""
    _write("INSERT INTO calls VALUES (?, ?)", tool, os.getpid())


def pay_back(number: int, key: str) -> None:
    """Refund an order. A second time with the same key changes nothing."""
    _write("INSERT OR IGNORE INTO refunds VALUES (?, ?)", key, number)


def _write(statement: str, *values: object) -> None:
    with closing(sqlite3.connect(os.environ.get("SHOP", "shop.sqlite"), timeout=30)) as shop, shop:
        shop.executescript(_TABLES)
        shop.execute(statement, values)
