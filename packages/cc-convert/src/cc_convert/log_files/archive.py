"""Convert rows to JSON lines and back: an archive for the CLI logs, which the CLI deletes."""

import json
from functools import cache
from typing import TYPE_CHECKING, Any, cast, get_args, get_type_hints

from .extract import LATEST
from .fields import MOST, Record, validator_class
from .rows import Kind, Row, make_row

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

ARCHIVED = "cc-convert-row"
"""The `type` field in archive lines."""


def to_archive(row: Row, title: str = "") -> str:
    """Return a row as a JSON line, without the newline; with the session title, if there is one."""
    named = {"title": title} if title else {}
    return json.dumps({"type": ARCHIVED, **row._asdict(), **named}, ensure_ascii=True, separators=(",", ":"))


def from_archive(record: Record) -> Row | None:
    """Return the row in an archive line, without its cost; `None` for other records."""
    try:
        # Older archives have no labels.
        fields = _validator().validate_python(dict.fromkeys(Row._fields) | Row._field_defaults | record)
    except ValueError:
        return None
    return make_row((*(fields[name] for name in Row._fields[:-1]), None))


@cache
def _validator() -> "SchemaValidator":
    count, text = {"type": "int", "strict": True, "ge": 0, "le": MOST}, {"type": "str", "strict": True}
    counts = {"type": "tuple", "items_schema": [count] * 5}
    time, cost = (
        {"type": "float", "strict": True, **bounds} for bounds in ({"gt": 0, "lt": LATEST}, {"ge": 0, "le": MOST})
    )
    schemas: dict[object, dict[str, Any]] = {
        "time": {"type": "nullable", "schema": time},
        "logged_cost": {"type": "nullable", "schema": cost},
        "tools": {"type": "tuple", "items_schema": [text], "variadic_item_index": 0},
        "steps": {"type": "tuple", "items_schema": [counts], "variadic_item_index": 0},
        str: text,
        int: count,
        bool: {"type": "bool", "strict": True},
        Kind: {"type": "literal", "expected": [*get_args(Kind)]},
    }
    # Without the cost, the last field.
    types = list(get_type_hints(Row).items())[:-1]
    fields = {name: {"type": "typed-dict-field", "schema": schemas.get(name) or schemas[kind]} for name, kind in types}
    return validator_class()(cast("Any", {"type": "typed-dict", "fields": fields}))
