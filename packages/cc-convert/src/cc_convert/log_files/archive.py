"""Convert rows to JSON lines and back: an archive for the CLI's own logs, which the CLI deletes."""

import json
from collections.abc import Callable
from typing import cast, get_args, get_type_hints

from .extract import LATEST
from .fields import MOST, Record
from .rows import Kind, Row, make_row

__all__ = ["ARCHIVED", "from_archive", "to_archive"]

ARCHIVED = "cc-convert-row"
"""The `type` field in archive lines."""


def to_archive(row: Row, title: str = "") -> str:
    """Return a row as a JSON line, without the newline; with the session's title, if there is one."""
    named = {"title": title} if title else {}
    return json.dumps({"type": ARCHIVED, **row._asdict(), **named}, ensure_ascii=True, separators=(",", ":"))


def from_archive(record: Record) -> Row | None:
    """Return the row in an archive line, without its cost; `None` for other records."""
    # Older archives have no labels.
    values = [_tuple(record.get(name, Row._field_defaults.get(name))) for name in Row._fields[:-1]]
    if not all(check(value) for check, value in zip(_CHECKS, values, strict=True)):
        return None
    return make_row((*values, None))


def _tuple(value: object) -> object:
    return tuple(map(_tuple, cast("list[object]", value))) if isinstance(value, list) else value


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST


def _is_cost(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and 0 <= value <= MOST)


def _is_time(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and 0 < value < LATEST)


def _is_tools(value: object) -> bool:
    return isinstance(value, tuple) and all(map(_is_text, cast("tuple[object, ...]", value)))


def _is_steps(value: object) -> bool:
    return isinstance(value, tuple) and all(map(_is_step, cast("tuple[object, ...]", value)))


def _is_step(value: object) -> bool:
    return isinstance(value, tuple) and [*map(_is_count, cast("tuple[object, ...]", value))] == [True] * 5


_TYPE_CHECKS: dict[object, Callable[[object], bool]] = {
    str: _is_text,
    int: _is_count,
    bool: lambda value: isinstance(value, bool),
    Kind: lambda value: value in get_args(Kind),
}
_FIELD_CHECKS = {"time": _is_time, "logged_cost": _is_cost, "tools": _is_tools, "steps": _is_steps}
# Without the cost, the last field.
_CHECKS = [_FIELD_CHECKS.get(name) or _TYPE_CHECKS[kind] for name, kind in list(get_type_hints(Row).items())[:-1]]
