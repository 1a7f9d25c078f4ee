"""JSON in UTF-8, taken strictly: what one side writes, every reader on the other side can read.

It knows bytes and values, and nothing of frames or sockets. The bridge process loads it, so it imports `json` alone.
"""

from __future__ import annotations

import json

# `typing` would cost the bridge some milliseconds; type checkers know this name without it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from cc_types import JsonValue

__all__ = ["decode_json", "decode_json_at", "encode_json"]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


# `NaN` and the infinities are Python's own addition to JSON. A strict reader further on would lose the whole message.
_decoder = json.JSONDecoder(parse_constant=_refuse)
_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def encode_json(value: object) -> bytes:
    """Return a value as compact JSON in UTF-8, on one line.

    Raises:
        ValueError: The value is not JSON's, or holds text that UTF-8 cannot carry.
    """
    try:
        return _encoder.encode(value).encode()
    except TypeError as error:
        raise ValueError(str(error)) from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def decode_json(payload: bytes) -> JsonValue:
    """Return the value of one JSON document in UTF-8.

    Raises:
        ValueError: It is not one.
    """
    try:
        return _decoder.decode(payload.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def decode_json_at(text: str, start: int) -> tuple[JsonValue, int]:
    """Return the value that starts at a position of a text, and the position after it.

    Raises:
        ValueError: None starts there.
    """
    try:
        return _decoder.raw_decode(text, start)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
