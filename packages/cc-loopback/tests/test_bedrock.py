"""Amazon Bedrock's errors and frames, read by a decoder that shares no code with the encoder."""

import json
import zlib

import pytest

from cc_loopback.api.bedrock import encode_event, encode_message, error_parts
from cc_loopback.api.errors import error_body


def decoded(stream: bytes) -> list[tuple[dict[str, str], bytes]]:
    """Return each message's headers and payload; check the checksums, and that all headers are texts."""
    messages: list[tuple[dict[str, str], bytes]] = []
    while stream:
        total, size = int.from_bytes(stream[:4]), int.from_bytes(stream[4:8])
        assert zlib.crc32(stream[:8]) == int.from_bytes(stream[8:12])
        message, stream = stream[:total], stream[total:]
        assert zlib.crc32(message[:-4]) == int.from_bytes(message[-4:])
        head, payload = message[12 : 12 + size], message[12 + size : -4]
        headers: dict[str, str] = {}
        while head:
            name, head = head[1 : 1 + head[0]].decode(), head[1 + head[0] :]
            assert head[0] == 7
            length = int.from_bytes(head[1:3])
            headers[name], head = head[3 : 3 + length].decode(), head[3 + length :]
        messages.append((headers, payload))
    return messages


@pytest.mark.parametrize(
    ("headers", "payload", "message"),
    [
        ({}, b"", "000000100000000005c248eb7d98c8ff"),
        ({}, b"{'foo':'bar'}", "0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936"),
        (
            {"content-type": "application/json"},
            b"{'foo':'bar'}",
            (
                "0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e"
                "7b27666f6f273a27626172277d8d9c08b1"
            ),
        ),
    ],
)
def test_a_message_equals_the_published_examples(headers: dict[str, str], payload: bytes, message: str) -> None:
    """LOOP-19."""
    assert encode_message(headers, payload).hex() == message


def test_an_error_in_a_stream_is_an_exception_with_a_message() -> None:
    """LOOP-34."""
    [(headers, payload)] = decoded(encode_event(error_body("rate_limit_error", "Too fast", "req_1")))
    assert headers == {
        ":message-type": "exception",
        ":exception-type": "throttlingException",
        ":content-type": "application/json",
    }
    assert json.loads(payload) == {"message": "Too fast"}


def test_an_amazon_error_name_can_be_given() -> None:
    """LOOP-34."""
    _, headers = error_parts(error_body("ServiceQuotaExceededException", None, "req_1"))
    assert headers == {"x-amzn-errortype": "ServiceQuotaExceededException"}
