"""Amazon's event stream framing: a message has lengths, a checksum, headers, a payload, and a second checksum.

This module knows bytes only, and not the meaning of headers and payload.
"""

import struct
import zlib
from collections.abc import Mapping

_STRING = 7  # the type of a header's value
_CHECKSUM = 4
_PRELUDE = 8


def encode_message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Return one message: lengths, their CRC32, headers, payload, and the CRC32 of all these."""
    head = b"".join(_header(name, value) for name, value in headers.items())
    lengths = struct.pack(">II", _PRELUDE + _CHECKSUM + len(head) + len(payload) + _CHECKSUM, len(head))
    message = lengths + _checksum(lengths) + head + payload
    return message + _checksum(message)


def _header(name: str, value: str) -> bytes:
    content = value.encode()
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", _STRING, len(content)) + content


def _checksum(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))
