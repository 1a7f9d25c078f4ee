"""Decode a line in a log to its record: a fast path for usual records, and a tolerant path for all others.

The fast path decodes only the relevant fields, and accepts a record only if each field is valid. All other records
take the tolerant path, which reads any JSON, repairs defects where possible, and reports them.
"""

import json
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from .fields import (
    COUNTS,
    FORK_TEXTS,
    MESSAGE_TEXTS,
    MOST,
    NESTED_COUNTS,
    RECORD_TEXTS,
    STATE_TEXTS,
    STATE_VALUES,
    TOTAL_COUNTS,
    USAGE_TEXTS,
    Record,
)

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

__all__ = ["Decoded", "Decoder", "decode_line", "fast_decoders", "validator_class"]

Decoder: TypeAlias = Callable[[bytes | bytearray], Record]
"""Returns a record's relevant fields, without content. Raises `ValueError` for an unusual record."""

_Schema: TypeAlias = dict[str, object]
_PACKAGE = "pydantic_core"
_EXTENSION = "pydantic_core._pydantic_core"
_SALVAGE_STARTS = (b'{"parentUuid":', b'{"type":', b'{"sessionId":')
_MOST_SALVAGES = 4
_MOST_DIGITS = 400


class Decoded(NamedTuple):
    """The records in a line, and the line's defect."""

    records: list[Record]
    """Usually a single record; none if the line cannot be read; several if it holds a list."""
    problem: str | None
    """The defect in words, if there is one."""
    lost: bool
    """True if a part could not be read."""


def validator_class() -> "type[SchemaValidator]":
    """Return `pydantic_core.SchemaValidator`.

    Importing the package also imports the Python functions that build schemas, in four times the time: 35 ms, a third
    of a report over small logs. A schema is a plain dict.
    """
    if _PACKAGE not in sys.modules and _EXTENSION not in sys.modules:
        package = find_spec(_PACKAGE)
        spec = PathFinder.find_spec(_EXTENSION, package.submodule_search_locations) if package else None
        if spec and spec.loader:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            # A later package import uses the same module.
            sys.modules[_EXTENSION] = module
    if _EXTENSION in sys.modules:
        return cast("type[SchemaValidator]", sys.modules[_EXTENSION].SchemaValidator)
    # Installed in another form, such as an archive.
    from pydantic_core import SchemaValidator

    return SchemaValidator


@cache
def fast_decoders() -> tuple[Decoder, Decoder]:
    """Return the decoder for records with usage, and the decoder for `cost-state`, the CLI's own total.

    Measured against msgspec, which skips unrequested fields but also accepts invalid UTF-8: with a check for that,
    msgspec is no faster on short lines and slower on long ones.
    """
    # Only pydantic's core: building models would take longer than reading a small log.
    make = validator_class()

    def optional(schema: _Schema) -> _Schema:
        return {"type": "typed-dict-field", "schema": {"type": "nullable", "schema": schema}, "required": False}

    def fields(members: dict[str, _Schema]) -> _Schema:
        return {"type": "typed-dict", "fields": members, "extra_behavior": "ignore"}

    text, number = optional({"type": "str"}), optional({"type": "int", "strict": True, "ge": 0, "le": MOST})
    nested = {name: optional(fields(dict.fromkeys(names, number))) for name, names in NESTED_COUNTS.items()}
    usage = fields(
        {**dict.fromkeys(COUNTS, number), **dict.fromkeys(USAGE_TEXTS, text), **nested}
        | {"iterations": optional({"type": "list"})}
    )
    message = fields(dict.fromkeys(MESSAGE_TEXTS, text) | {"usage": optional(usage)})
    record = dict.fromkeys(RECORD_TEXTS, text) | {"message": optional(message)}
    record |= {"forkedFrom": optional(fields(dict.fromkeys(FORK_TEXTS, text)))}
    record |= {"isApiErrorMessage": optional({"type": "bool", "strict": True})}
    cost: _Schema = {"type": "float", "strict": True, "ge": 0, "le": MOST, "allow_inf_nan": False}
    record |= {"costUSD": optional(cost)}
    total = fields(dict.fromkeys(TOTAL_COUNTS, number) | {"costUSD": optional(cost)})
    state = dict.fromkeys(STATE_TEXTS, text) | dict.fromkeys(STATE_VALUES, optional({"type": "any"}))
    state |= {"modelUsage": optional({"type": "dict", "keys_schema": {"type": "str"}, "values_schema": total})}
    decoders = (make(cast("Any", fields(members))).validate_json for members in (record, state))
    usual, own = (cast("Decoder", decoder) for decoder in decoders)
    return usual, own


def decode_line(line: bytes) -> Decoded:
    """Decode any line; never raises.

    A byte order mark and NUL bytes are removed, invalid UTF-8 becomes replacement characters; all are reported,
    except the mark. If a record follows a cut-off line, the complete record is kept.
    """
    text = line.strip().removeprefix(b"\xef\xbb\xbf").strip()
    if not text:
        return Decoded([], None, lost=False)
    problem = None
    if b"\0" in text:
        text = text.replace(b"\0", b"")
        problem = "NUL bytes"
        if not text.strip():
            return Decoded([], "nothing but NUL bytes", lost=True)
    try:
        string = str(text, "utf-8")
    except UnicodeDecodeError:
        string, problem = str(text, "utf-8", "replace"), "invalid UTF-8"
    try:
        value, odd = _load(string)
    except ValueError as error:
        return _salvage(text, str(error))
    problem = problem or odd
    records, strange = _records(value)
    if strange:
        return Decoded(records, strange, lost=not records)
    return Decoded(records, problem, lost=False)


def _load(string: str) -> tuple[object, str | None]:
    """Return the value in a JSON text, and the defect; `ValueError` has the reason in words if there is no value."""
    try:
        try:
            value, odd = json.loads(string), None
        except json.JSONDecodeError:
            raise
        except ValueError:
            # JSON allows numbers with any length; Python converts a limited number of digits.
            value, odd = json.loads(string, parse_int=_short_int), "a number that is too long"
        if "\\ud" in string or "\\uD" in string:
            value, halved = _without_half_characters(value)
            odd = odd or halved
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}") from None
    return value, odd


def _short_int(digits: str) -> int | None:
    return int(digits) if len(digits) < _MOST_DIGITS else None


def _without_half_characters(value: object) -> tuple[object, str | None]:
    """Replace lone surrogates, which JSON can contain, but files and terminals cannot."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-8", "replace")), "half of a character"
    return value, None


def _records(value: object) -> tuple[list[Record], str | None]:
    if isinstance(value, dict):
        return [cast("Record", value)], None
    if isinstance(value, list):
        # `--output-format json --verbose` writes all messages as a list.
        members = cast("list[object]", value)
        records = [cast("Record", member) for member in members if isinstance(member, dict)]
        return records, None if len(records) == len(members) else "a list with members that are not objects"
    return [], f"JSON, but not an object: {type(value).__name__}"


def _salvage(text: bytes, reason: str) -> Decoded:
    """Handle a killed writer's half line, with the next record on the same line."""
    starts = [at for start in _SALVAGE_STARTS if (at := text.rfind(start, 1)) > 0]
    for at in sorted(starts, reverse=True)[:_MOST_SALVAGES]:
        try:
            value, _ = _load(str(text[at:], "utf-8", "replace"))
        except ValueError:
            continue
        if isinstance(value, dict):
            return Decoded([cast("Record", value)], f"cut off, and written over from byte {at}", lost=True)
    return Decoded([], reason, lost=True)
