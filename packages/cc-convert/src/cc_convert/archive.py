"""Rows as lines of JSON that can be read back: an archive of what the CLI's own logs told before it deleted them."""

import json
from typing import cast, get_type_hints

from .fields import Record
from .rows import Row, make_row

__all__ = ["ARCHIVED", "from_archive", "to_archive"]

ARCHIVED = "cc-convert-row"
"""The `type` of such a line."""

_LISTS = ("tools", "steps")
_OPTIONAL = ("time", "cost", "logged_cost")
_KINDS: dict[str, tuple[type, ...]] = {
    name: (float, int, type(None)) if name in _OPTIONAL else (kind if isinstance(kind, type) else str,)
    for name, kind in get_type_hints(Row).items()
    if name not in _LISTS
}


def to_archive(row: Row) -> str:
    """A row as a line of JSON, without the newline."""
    return json.dumps({"type": ARCHIVED, **row._asdict()}, ensure_ascii=True, separators=(",", ":"))


def from_archive(record: Record) -> Row | None:
    """The row of such a line; `None` if it is none. The cost is left to the price list."""
    values: list[object] = []
    for name in Row._fields:
        value: object = record.get(name)
        if name in _LISTS:
            value = _tuple(value)
        elif not isinstance(value, _KINDS[name]):
            return None
        values.append(None if name == "cost" else value)
    return make_row(values)


def _tuple(value: object) -> tuple[object, ...]:
    members = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(_tuple(cast("object", one)) if isinstance(one, list) else one for one in members)
