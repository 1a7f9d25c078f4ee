"""Framing without I/O: bytes go in, events come out.

A frame is a payload length in four bytes, unsigned and big-endian, and then the payload: JSON in UTF-8.

    decoder = FrameDecoder()
    decoder.receive_data(data)          # b"" means that the stream has ended
    event = decoder.next_event()        # a Frame, NEED_DATA, or END_OF_STREAM
"""

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from cc_ipc_bridge.constants import LENGTH_PREFIX_SIZE, MAX_MESSAGE_SIZE
from cc_ipc_bridge.payload import decode_json, encode_json

from .errors import (
    InvalidPayloadError,
    LocalMessageSizeError,
    RemoteMessageSizeError,
    RemoteProtocolError,
    UnencodableMessageError,
)

if TYPE_CHECKING:
    from cc_types import JsonValue


class Signal(Enum):
    """Reason for an event without a frame."""

    NEED_DATA = "need data"
    """No frame is complete yet."""
    END_OF_STREAM = "end of stream"
    """The other side closed the stream between two frames. All later events are the same."""


NEED_DATA: Final = Signal.NEED_DATA
END_OF_STREAM: Final = Signal.END_OF_STREAM


@dataclass(frozen=True, slots=True)
class Frame:
    """A complete frame."""

    payload: bytes
    """The payload as received."""
    message: "JsonValue"
    """The decoded JSON value."""


Event: TypeAlias = Frame | Literal[Signal.NEED_DATA, Signal.END_OF_STREAM]
"""Result of `FrameDecoder.next_event`."""


def encode_frame(message: object, *, max_size: int = MAX_MESSAGE_SIZE) -> bytes:
    """Return a message as a frame.

    Args:
        message: A JSON value, or `bytes` that are JSON already and are sent unchanged.
        max_size: Largest allowed payload in bytes.

    Raises:
        LocalMessageSizeError: The payload is larger. It is an `IPCMessageSizeError`.
        UnencodableMessageError: The message cannot be encoded as JSON.
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
    """Decoder for a byte stream that may be split at any position.

    Args:
        max_size: Largest allowed payload in bytes. A larger payload is refused as soon as the length is known.
    """

    def __init__(self, *, max_size: int = MAX_MESSAGE_SIZE) -> None:
        self._max_size = max_size
        self._buffer = bytearray()
        self._closed = False
        self._loss: RemoteProtocolError | None = None

    def receive_data(self, data: bytes) -> None:
        """Append received bytes to the buffer, without decoding them. `b""` means that the other side has closed."""
        if self._loss is not None:
            return
        if data:
            self._buffer += data
        else:
            self._closed = True

    def next_event(self) -> Event:
        """Return the next frame, or the reason why there is none.

        Raises:
            RemoteMessageSizeError: A frame is too large. The start of the next frame is unknown then, so every later
                call raises the same error.
            InvalidPayloadError: A payload is not JSON. The decoder continues with the next frame.
            RemoteProtocolError: The other side has closed within a frame. Every later call raises the same error.
        """
        if self._loss is not None:
            raise self._loss
        size = self._payload_size()
        if size is None:
            if self._closed and self._buffer:
                raise self._lose(RemoteProtocolError("The other side closed the connection within a frame."))
            return END_OF_STREAM if self._closed else NEED_DATA
        payload = bytes(memoryview(self._buffer)[LENGTH_PREFIX_SIZE : LENGTH_PREFIX_SIZE + size])
        del self._buffer[: LENGTH_PREFIX_SIZE + size]
        try:
            return Frame(payload, decode_json(payload))
        except ValueError as error:
            raise InvalidPayloadError(size=size, reason=str(error)) from error

    def _payload_size(self) -> int | None:
        """Return the first buffered payload size, or `None` if the payload is incomplete."""
        if len(self._buffer) < LENGTH_PREFIX_SIZE:
            return None
        size = int.from_bytes(self._buffer[:LENGTH_PREFIX_SIZE], "big")
        if size > self._max_size:
            raise self._lose(RemoteMessageSizeError(size=size, limit=self._max_size))
        return size if len(self._buffer) >= LENGTH_PREFIX_SIZE + size else None

    def _lose(self, error: RemoteProtocolError) -> RemoteProtocolError:
        self._loss = error
        self._buffer.clear()
        return error

    def __repr__(self) -> str:
        state = "lost" if self._loss else "closed" if self._closed else "open"
        return f"<FrameDecoder {state}, {len(self._buffer)} bytes buffered>"
