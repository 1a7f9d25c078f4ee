"""Strict JSON in UTF-8, which every reader on the other side can decode. The bridge loads it, so it imports little."""

from __future__ import annotations

import json

# Importing `typing` would cost the bridge some milliseconds; type checkers know this name without it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cc_types import JsonValue


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


# `NaN` and the infinities are Python's extension of JSON. A strict reader would drop the whole message.
_decoder = json.JSONDecoder(parse_constant=_refuse)
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode_json(value: object) -> bytes:
    """Return a value as compact JSON in UTF-8, without line breaks.

    Raises:
        ValueError: The value cannot be encoded as JSON, or contains text that UTF-8 cannot encode.
    """
    try:
        return _encoder.encode(value).encode()
    except TypeError as error:
        raise ValueError(str(error)) from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def decode_json(payload: bytes) -> JsonValue:
    """Return the value in a JSON document in UTF-8.

    Raises:
        ValueError: The payload is not JSON in UTF-8.
    """
    try:
        return _decoder.decode(payload.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def decode_json_at(text: str, start: int) -> tuple[JsonValue, int]:
    """Return the JSON value at a position in a text, and the position after it.

    Raises:
        ValueError: No JSON value starts there.
    """
    try:
        return _decoder.raw_decode(text, start)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
