"""Frames: whole, split, valid and invalid."""

import os
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cc_ipc
from cc_ipc.errors import InvalidPayloadError, LocalMessageSizeError, RemoteMessageSizeError, UnencodableMessageError

FUZZ_FRAMES = int(os.environ.get("CC_IPC_FUZZ_FRAMES", "2000"))
"""How many random frames: 100,000 in a soak run, fewer here."""

TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


def decoder_of(*data: bytes) -> cc_ipc.FrameDecoder:
    decoder = cc_ipc.FrameDecoder()
    for piece in data:
        decoder.receive_data(piece)
    return decoder


def decoded(decoder: cc_ipc.FrameDecoder) -> list[object]:
    """Return all messages that a decoder can return now."""
    messages: list[object] = []
    while isinstance(event := decoder.next_event(), cc_ipc.Frame):
        messages.append(event.message)
    return messages


def test_a_frame_is_a_length_and_json_and_becomes_one_event() -> None:
    """IPC-P-02, IPC-D-37, IPC-R-02, IPC-P-07: a length in four bytes, big-endian, then the payload in UTF-8."""
    frame = cc_ipc.encode_frame({"name": "Zürich"})
    payload = '{"name":"Zürich"}'.encode()
    assert frame == len(payload).to_bytes(4, "big") + payload
    assert cc_ipc.LENGTH_PREFIX_SIZE == 4
    decoder = decoder_of(frame)
    assert decoder.next_event() == cc_ipc.Frame(payload, {"name": "Zürich"})
    assert decoder.next_event() is cc_ipc.NEED_DATA


@given(st.lists(JSON, max_size=4), st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_a_stream_split_anywhere_gives_the_same_frames(messages: list[object], data: st.DataObject) -> None:
    """IPC-P-07: whole, byte by byte, or with trailing bytes from the next frame."""
    stream = b"".join(map(cc_ipc.encode_frame, messages))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    for feed in ([stream], [stream[i : i + 1] for i in range(len(stream))], pieces):
        decoder = cc_ipc.FrameDecoder()
        output: list[object] = []
        for piece in filter(None, feed):
            decoder.receive_data(piece)
            output += decoded(decoder)
        assert output == messages


def test_a_payload_of_exactly_the_limit_passes_both_ways() -> None:
    """IPC-P-03, IPC-D-16, IPC-D-32, IPC-R-05: exactly `MAX_MESSAGE_SIZE` bytes are accepted."""
    payload = b'"' + b"a" * (cc_ipc.MAX_MESSAGE_SIZE - 2) + b'"'
    decoder = decoder_of(cc_ipc.encode_frame(payload))
    event = decoder.next_event()
    assert isinstance(event, cc_ipc.Frame)
    assert len(event.payload) == cc_ipc.MAX_MESSAGE_SIZE == 10_485_760


def test_one_byte_more_than_the_limit_is_not_sent() -> None:
    """IPC-P-03, IPC-D-16, IPC-P-E02: the sender raises `IPCMessageSizeError`, a local error."""
    with pytest.raises(LocalMessageSizeError) as caught:
        cc_ipc.encode_frame("a" * (cc_ipc.MAX_MESSAGE_SIZE - 1))
    assert isinstance(caught.value, cc_ipc.IPCMessageSizeError | cc_ipc.LocalProtocolError)
    assert not isinstance(caught.value, cc_ipc.RemoteProtocolError)  # IPC-P-08
    assert (caught.value.size, caught.value.limit) == (cc_ipc.MAX_MESSAGE_SIZE + 1, cc_ipc.MAX_MESSAGE_SIZE)


def test_one_byte_more_than_the_limit_is_refused_before_it_arrives() -> None:
    """IPC-P-03: four bytes are enough to refuse it; no buffer is allocated."""
    decoder = decoder_of((cc_ipc.MAX_MESSAGE_SIZE + 1).to_bytes(4, "big"))
    with pytest.raises(RemoteMessageSizeError) as caught:
        decoder.next_event()
    assert isinstance(caught.value, cc_ipc.IPCMessageSizeError)
    assert not isinstance(caught.value, cc_ipc.LocalProtocolError)  # IPC-P-08
    decoder.receive_data(b"a" * 1000)
    assert "0 bytes buffered" in repr(decoder)
    with pytest.raises(RemoteMessageSizeError):
        decoder.next_event()


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b"nonsense", b"\xff", b"NaN", b"[1e999", b"{}{}", '"é"'.encode("utf-16"), b"[" * 100_000],
    ids=lambda payload: repr(payload[:9]),
)
def test_a_payload_that_is_not_json_does_not_hide_the_next_frame(payload: bytes) -> None:
    """IPC-P-E03: the receiver raises `IPCError`, a remote fault."""
    decoder = decoder_of(cc_ipc.encode_frame(payload) + cc_ipc.encode_frame("next"))
    with pytest.raises(InvalidPayloadError) as caught:
        decoder.next_event()
    assert isinstance(caught.value, cc_ipc.IPCError)
    assert isinstance(caught.value, cc_ipc.RemoteProtocolError)
    assert caught.value.size == len(payload)
    assert ("nested too deeply" in str(caught.value)) == (len(payload) == 100_000)
    assert decoded(decoder) == ["next"]


ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    "message",
    [{1, 2}, float("nan"), float("inf"), "\ud800", {(1,): 2}, object(), ENDLESS],
    ids=["set", "nan", "infinity", "half a character", "key", "object", "endless"],
)
def test_a_value_that_json_cannot_encode_is_a_local_fault(message: object) -> None:
    with pytest.raises(UnencodableMessageError) as caught:
        cc_ipc.encode_frame(message)
    assert isinstance(caught.value, cc_ipc.LocalProtocolError)


def test_a_value_nested_too_deeply_is_a_local_fault() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(UnencodableMessageError, match="nested too deeply"):
        cc_ipc.encode_frame(nested)


def test_the_end_is_an_event_between_frames_and_a_fault_within() -> None:
    decoder = decoder_of(cc_ipc.encode_frame(1), b"")
    assert decoded(decoder) == [1]
    assert decoder.next_event() is cc_ipc.END_OF_STREAM
    assert "closed" in repr(decoder)

    decoder = decoder_of(cc_ipc.encode_frame(1)[:-1])
    assert "open" in repr(decoder)
    decoder.receive_data(b"")
    for _ in range(2):
        with pytest.raises(cc_ipc.RemoteProtocolError, match="within a frame"):
            decoder.next_event()
    assert "lost" in repr(decoder)


def test_random_and_mutated_frames_raise_nothing_but_remote_faults() -> None:
    """IPC-P-09: for any input, a decoder returns an event or raises a remote fault."""
    chance = random.Random(4)
    good = cc_ipc.encode_frame({"method": "call_tool", "params": {"name": "echo", "arguments": {"x": "é"}}})
    for _ in range(FUZZ_FRAMES):
        stream = bytearray(
            good * chance.randint(1, 2) if chance.random() < 0.7 else chance.randbytes(chance.randint(1, 60))
        )
        for _ in range(chance.randint(0, 4)):
            stream[chance.randrange(len(stream))] = chance.randrange(256)
        decoder = decoder_of(bytes(stream[: chance.randint(1, len(stream))]), b"")
        for _ in range(4):
            try:
                decoder.next_event()
            except cc_ipc.RemoteProtocolError:
                continue
