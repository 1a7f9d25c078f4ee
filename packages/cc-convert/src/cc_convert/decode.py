"""One line of a log into the record it holds: fast for what is as usual, patient with what is not.

The fast way decodes only the fields that matter and takes any value in them, so that a `null` or a new kind of value
never costs a record. Whatever it refuses goes the patient way, which mends what can be mended and says what it did.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

__all__ = ["Decoded", "Record", "decode_line", "fast_decoder"]

Record: TypeAlias = dict[str, Any]

_SALVAGE_STARTS = (b'{"parentUuid":', b'{"type":', b'{"sessionId":')
_MOST_SALVAGES = 4
_MOST_DIGITS = 400

_USAGE = (
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "service_tier",
    "inference_geo", "speed", "cache_creation", "output_tokens_details", "server_tool_use", "iterations",
)  # fmt: skip
_RECORD = (
    "type", "subtype", "sessionId", "session_id", "requestSessionId", "cwd", "timestamp", "uuid", "requestId",
    "request_id", "isSidechain", "agentId", "agent_id", "attributionAgent", "subagent_type", "parent_tool_use_id",
    "costUSD", "isApiErrorMessage", "error",
)  # fmt: skip
# A result and a `cost-state` are rare and taken whole.
WHOLE = frozenset({"result", "cost-state", "stream_event"})


class Decoded(NamedTuple):
    """What a line holds, and what was odd about it."""

    records: list[Record]
    """Usually one; none if nothing could be read; several where a line holds a list."""
    problem: str | None
    """What was wrong, if anything was."""
    lost: bool
    """Whether something could not be read."""


def fast_decoder() -> Callable[[bytes], Record]:
    """The quickest decoder that is installed: msgspec's, or else pydantic's. Both raise `ValueError`."""
    try:
        return _msgspec_decoder()
    except ImportError:
        return _pydantic_decoder()


def _pydantic_decoder() -> Callable[[bytes], Record]:
    # The core alone: building models would take longer than reading a small log.
    from pydantic_core import SchemaValidator, core_schema

    any_value = core_schema.typed_dict_field(core_schema.any_schema(), required=False)

    def fields(names: tuple[str, ...], **nested: Any) -> Any:
        given = dict.fromkeys(names, any_value)
        given |= {name: core_schema.typed_dict_field(schema, required=False) for name, schema in nested.items()}
        return core_schema.typed_dict_schema(given, extra_behavior="ignore")

    block = core_schema.union_schema([fields(("type", "name", "id")), core_schema.any_schema()], mode="left_to_right")
    content = core_schema.union_schema(
        [core_schema.list_schema(block), core_schema.any_schema()], mode="left_to_right"
    )
    message = fields(("id", "model", "stop_reason"), usage=fields(_USAGE), content=content)
    return cast("Callable[[bytes], Record]", SchemaValidator(fields(_RECORD, message=message)).validate_json)


def _msgspec_decoder() -> Callable[[bytes], Record]:
    from typing import TypedDict

    import msgspec

    def fields(name: str, names: tuple[str, ...], **nested: Any) -> Any:
        return TypedDict(name, {**dict.fromkeys(names, Any), **nested}, total=False)

    usage = fields("Usage", _USAGE)
    block = fields("Block", ("type", "name", "id"))
    message = fields("Message", ("id", "model", "stop_reason"), usage=usage, content=list[block])
    decode = msgspec.json.Decoder(fields("Record", _RECORD, message=message)).decode

    def checked(line: bytes) -> Record:
        # msgspec passes over what it skips, and so over bytes that are no text and half characters in it.
        if not line.isascii():
            str(line, "utf-8")
        if b"\\ud" in line or b"\\uD" in line:
            raise ValueError("may hold half a character")
        return cast("Record", decode(line))

    return checked


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
        value = _load(string)
    except _TooLongNumberError:
        value, problem = json.loads(string, parse_int=_short_int), "a number that is too long"
    except ValueError as error:
        return _salvaged(text, str(error))
    records, strange = _records(value)
    if problem is None and _has_half_characters(string):
        problem = "half of a character"
    if strange:
        return Decoded(records, strange, lost=not records)
    return Decoded(records, problem, lost=False)


class _TooLongNumberError(ValueError):
    """JSON allows numbers of any length, Python converts only so many digits."""


def _load(string: str) -> object:
    try:
        return json.loads(string)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg}") from None
    except ValueError:
        raise _TooLongNumberError from None


def _short_int(digits: str) -> int | None:
    return int(digits) if len(digits) < _MOST_DIGITS else None


def _records(value: object) -> tuple[list[Record], str | None]:
    if isinstance(value, dict):
        return [cast("Record", value)], None
    if isinstance(value, list):
        # `--output-format json --verbose` writes all messages as one list.
        members = cast("list[object]", value)
        records = [cast("Record", member) for member in members if isinstance(member, dict)]
        return records, None if len(records) == len(members) else "a list with members that are no objects"
    return [], f"JSON, but no object: {type(value).__name__}"


def _has_half_characters(string: str) -> bool:
    if "\\ud" not in string and "\\uD" not in string:
        return False
    try:
        json.dumps(json.loads(string), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (RecursionError, ValueError):
        return False
    return False


def _salvaged(text: bytes, reason: str) -> Decoded:
    """A writer that was killed leaves half a line, and the next one goes on behind it."""
    starts = [at for start in _SALVAGE_STARTS if (at := text.rfind(start, 1)) > 0]
    for at in sorted(starts, reverse=True)[:_MOST_SALVAGES]:
        try:
            value = _load(str(text[at:], "utf-8", "replace"))
        except ValueError:
            continue
        if isinstance(value, dict):
            return Decoded([cast("Record", value)], f"cut off, and written over from byte {at}", lost=True)
    return Decoded([], reason, lost=True)
