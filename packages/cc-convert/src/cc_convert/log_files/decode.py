"""Decode any line in a log to its records: defects are repaired where possible, and reported.

Usual records take the fast path in `fields`, which accepts a record only if each relevant field is valid.
"""

import json
from typing import NamedTuple, cast

from .fields import Record

_SALVAGE_STARTS = (b'{"parentUuid":', b'{"type":', b'{"sessionId":')
_MOST_SALVAGES = 4
_MOST_DIGITS = 400


class Decoded(NamedTuple):
    """The records in a line, and the line defect."""

    records: list[Record]
    """Usually a single record; none if the line cannot be read; several if it holds a list."""
    problem: str | None
    """The defect in words, if there is one."""
    lost: bool
    """True if a part could not be read."""


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
