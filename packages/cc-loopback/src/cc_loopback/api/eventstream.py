"""Amazon's event stream framing. This module knows bytes only, not the meaning of headers and payload."""

import struct
import zlib
from collections.abc import Mapping

_STRING = 7  # type of a header value
_CHECKSUM = 4
_PRELUDE = 8


def encode_message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return a message: lengths, their CRC32, headers, payload, and a CRC32 over all these."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    lengths = struct.pack(">II", _PRELUDE + _CHECKSUM + len(head) + len(payload) + _CHECKSUM, len(head))
    message = lengths + _checksum(lengths) + head + payload
    return message + _checksum(message)


def _header(name: str, value: str) -> bytes:
    content = value.encode()
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", _STRING, len(content)) + content


def _checksum(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))
