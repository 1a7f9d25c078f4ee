"""Frames, without any I/O: bytes go in, events come out.

A frame is a length of four bytes, unsigned and big-endian, and then so many bytes of JSON in UTF-8. Where the bytes
come from, and what the JSON means, is not known here: no socket, no event loop, no tool.

    decoder = FrameDecoder()
    decoder.receive_data(data)          # as they come; b"" says that no more will
    event = decoder.next_event()        # a Frame, NEED_DATA, or END_OF_STREAM
"""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from .constants import LENGTH_PREFIX_SIZE, MAX_MESSAGE_SIZE
from .errors import (
    InvalidPayloadError,
    LocalMessageSizeError,
    RemoteMessageSizeError,
    RemoteProtocolError,
    UnencodableMessageError,
)
from .payload import decode_json, encode_json

if TYPE_CHECKING:
    from cc_types import JsonValue

__all__ = ["END_OF_STREAM", "NEED_DATA", "Event", "Frame", "FrameDecoder", "Signal", "encode_frame"]


class Signal(Enum):
    """What a decoder says when it has no frame."""

    NEED_DATA = "need data"
    """No frame is complete yet."""
    END_OF_STREAM = "end of stream"
    """The other side has closed, between two frames. It is said again each time."""


NEED_DATA: Final = Signal.NEED_DATA
END_OF_STREAM: Final = Signal.END_OF_STREAM


@dataclass(frozen=True, slots=True)
class Frame:
    """One whole frame."""

    payload: bytes
    """The payload as it came."""
    message: "JsonValue"
    """The JSON value it says."""


Event: TypeAlias = Frame | Literal[Signal.NEED_DATA, Signal.END_OF_STREAM]
"""What `FrameDecoder.next_event` returns."""


def encode_frame(message: object, *, max_size: int = MAX_MESSAGE_SIZE) -> bytes:
    """Return a message as a frame.

    Args:
        message: A JSON value, or `bytes` that are JSON already and go out as they are.
        max_size: Bytes that the payload may have.

    Raises:
        LocalMessageSizeError: The payload is larger; it is an `IPCMessageSizeError`.
        UnencodableMessageError: The message is not JSON's.
    """
    if isinstance(message, bytes):
        payload = message
    else:
        try:
            payload = encode_json(message)
        except ValueError as error:
            raise UnencodableMessageError(reason=str(error)) from error
    if len(payload) > max_size:
        raise LocalMessageSizeError(size=len(payload), limit=max_size)
    return len(payload).to_bytes(LENGTH_PREFIX_SIZE, "big") + payload


class FrameDecoder:
    """Finds the frames in a stream of bytes, however it is cut.

    Args:
        max_size: Bytes that a payload may have. One that announces more is refused when its length is known.
    """

    def __init__(self, *, max_size: int = MAX_MESSAGE_SIZE) -> None:
        self._max_size = max_size
        self._buffer = bytearray()
        self._closed = False
        self._lost: RemoteProtocolError | None = None

    def receive_data(self, data: bytes) -> None:
        """Take bytes that were received; none, `b""`, say that the other side has closed. Nothing is looked at yet."""
        if self._lost is not None:
            return
        if data:
            self._buffer += data
        else:
            self._closed = True

    def next_event(self) -> Event:
        """Return the next frame, or why there is none.

        Raises:
            RemoteMessageSizeError: A frame is too large. Where the next one starts cannot be known any more, so the
                error is raised again each time.
            InvalidPayloadError: A payload is not JSON. The decoder goes on with the frame after it.
            RemoteProtocolError: The other side has closed within a frame. Raised again each time.
        """
        if self._lost is not None:
            raise self._lost
        size = self._payload_size()
        if size is None:
            return self._without_frame()
        payload = bytes(memoryview(self._buffer)[LENGTH_PREFIX_SIZE : LENGTH_PREFIX_SIZE + size])
        del self._buffer[: LENGTH_PREFIX_SIZE + size]
        try:
            return Frame(payload, decode_json(payload))
        except ValueError as error:
            raise InvalidPayloadError(size=size, reason=str(error)) from error

    def _payload_size(self) -> int | None:
        """Return the size of the payload at the front, or `None` if it is not whole."""
        if len(self._buffer) < LENGTH_PREFIX_SIZE:
            return None
        size = int.from_bytes(self._buffer[:LENGTH_PREFIX_SIZE], "big")
        if size > self._max_size:
            raise self._lose(RemoteMessageSizeError(size=size, limit=self._max_size))
        return size if len(self._buffer) >= LENGTH_PREFIX_SIZE + size else None

    def _without_frame(self) -> Event:
        if not self._closed:
            return NEED_DATA
        if self._buffer:
            raise self._lose(RemoteProtocolError("The other side closed the connection within a frame."))
        return END_OF_STREAM

    def _lose(self, error: RemoteProtocolError) -> RemoteProtocolError:
        self._lost = error
        self._buffer.clear()
        return error

    def __repr__(self) -> str:
        state = "lost" if self._lost else "closed" if self._closed else "open"
        return f"<FrameDecoder {state}, {len(self._buffer)} bytes buffered>"
