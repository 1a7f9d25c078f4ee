"""One line of a log into the record it holds: fast for what is as usual, patient with what is not.

The fast way decodes only the fields that matter, and takes a record only if each of them is what it should be. Whatever
it refuses goes the patient way, which reads any JSON, mends what can be mended, and says what it did.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, cast

from .fields import COUNTS, FORK_TEXTS, MESSAGE_TEXTS, MOST, NESTED_COUNTS, RECORD_TEXTS, USAGE_TEXTS, Record

__all__ = ["Decoded", "decode_line", "fast_decoder"]

_SALVAGE_STARTS = (b'{"parentUuid":', b'{"type":', b'{"sessionId":')
_MOST_SALVAGES = 4
_MOST_DIGITS = 400


class Decoded(NamedTuple):
    """What a line holds, and what was odd about it."""

    records: list[Record]
    """Usually one; none if nothing could be read; several where a line holds a list."""
    problem: str | None
    """What was wrong, if anything was."""
    lost: bool
    """Whether something could not be read."""


@cache
def fast_decoder() -> Callable[[bytes | bytearray], Record]:
    """A decoder of the fields that matter, content apart. It raises `ValueError` for a record that is not as usual.

    Measured against msgspec, which skips what is not asked for: once msgspec's blindness for bytes that are no text is
    made up for, it is no quicker on short lines and slower on long ones.
    """
    # The core alone: building models would take longer than reading a small log.
    from pydantic_core import SchemaValidator
    from pydantic_core import core_schema as cs

    def optional(schema: cs.CoreSchema) -> cs.TypedDictField:
        return cs.typed_dict_field(cs.nullable_schema(schema), required=False)

    text, number = optional(cs.str_schema()), optional(cs.int_schema(strict=True, ge=0, le=MOST))

    def fields(known: dict[str, cs.TypedDictField]) -> cs.CoreSchema:
        return cs.typed_dict_schema(known, extra_behavior="ignore")

    nested = {name: optional(fields(dict.fromkeys(names, number))) for name, names in NESTED_COUNTS.items()}
    usage = fields(
        {**dict.fromkeys(COUNTS, number), **dict.fromkeys(USAGE_TEXTS, text), **nested}
        | {"iterations": optional(cs.list_schema())}
    )
    message = fields(dict.fromkeys(MESSAGE_TEXTS, text) | {"usage": optional(usage)})
    record = dict.fromkeys(RECORD_TEXTS, text) | {"message": optional(message)}
    record |= {"forkedFrom": optional(fields(dict.fromkeys(FORK_TEXTS, text)))}
    record |= {"isApiErrorMessage": optional(cs.bool_schema()), "costUSD": optional(cs.float_schema(ge=0, le=MOST))}
    return cast("Callable[[bytes | bytearray], Record]", SchemaValidator(fields(record)).validate_json)


def decode_line(line: bytes) -> Decoded:
    """Decode a line of any kind; never raises.

    A byte order mark is taken off, NUL bytes are taken out, invalid UTF-8 becomes replacement characters; each is
    reported, a mark excepted. Of a line that was cut off and written over, the part that is whole is kept.
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
        return _salvaged(text, str(error))
    problem = problem or odd
    records, strange = _records(value)
    if strange:
        return Decoded(records, strange, lost=not records)
    return Decoded(records, problem, lost=False)


def _load(string: str) -> tuple[object, str | None]:
    """The value of a text of JSON, and what is odd about it; `ValueError` says in words why there is none."""
    try:
        try:
            value, odd = json.loads(string), None
        except json.JSONDecodeError:
            raise
        except ValueError:
            # JSON allows numbers of any length, Python converts only so many digits.
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
    """JSON can name one half of a pair of surrogates; no file and no terminal takes it, so a mark takes its place."""
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
        # `--output-format json --verbose` writes all messages as one list.
        members = cast("list[object]", value)
        records = [cast("Record", member) for member in members if isinstance(member, dict)]
        return records, None if len(records) == len(members) else "a list with members that are no objects"
    return [], f"JSON, but no object: {type(value).__name__}"


def _salvaged(text: bytes, reason: str) -> Decoded:
    """A writer that was killed leaves half a line, and the next one goes on behind it."""
    starts = [at for start in _SALVAGE_STARTS if (at := text.rfind(start, 1)) > 0]
    for at in sorted(starts, reverse=True)[:_MOST_SALVAGES]:
        try:
            value, _ = _load(str(text[at:], "utf-8", "replace"))
        except ValueError:
            continue
        if isinstance(value, dict):
            return Decoded([cast("Record", value)], f"cut off, and written over from byte {at}", lost=True)
    return Decoded([], reason, lost=True)
