"""The Messages API events and errors in Amazon Bedrock's format, and Amazon's event stream framing."""

import base64
import struct
import zlib
from collections.abc import Mapping

from .errors import BEDROCK_EXCEPTION_BY_TYPE
from .events import encode_json
from .types import JsonObject

EVENT_STREAM = "application/vnd.amazon.eventstream"
_STRING = 7  # type of a header value
_CHECKSUM = 4
_PRELUDE = 8


def encode_event(event: JsonObject) -> bytes:
    """Return an event as a message in Amazon's event stream; an `error` event becomes an exception."""
    if event["type"] == "error":
        name = _exception_name(event)
        kind = {":message-type": "exception", ":exception-type": name[0].lower() + name[1:]}
        payload: JsonObject = {"message": event["error"]["message"]}
    else:
        kind = {":message-type": "event", ":event-type": "chunk"}
        payload = {"bytes": base64.b64encode(encode_json(event)).decode()}
    return encode_message({**kind, ":content-type": "application/json"}, encode_json(payload))


def error_parts(body: JsonObject) -> tuple[JsonObject, dict[str, str]]:
    """Return body and headers for the Bedrock response to an API error."""
    return {"message": body["error"]["message"]}, {"x-amzn-errortype": _exception_name(body)}


def _exception_name(body: JsonObject) -> str:
    """Return Amazon's name for the error type; an unknown type stays unchanged."""
    kind: str = body["error"]["type"]
    return BEDROCK_EXCEPTION_BY_TYPE.get(kind, kind)


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
