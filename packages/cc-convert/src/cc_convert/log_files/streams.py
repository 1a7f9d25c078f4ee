"""Byte streams from logs, packed with gzip or not, and the lines in them."""

import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol

__all__ = ["Blocks", "DamagedLogError", "Readable", "begins_packed", "lines_of", "lines_with_offsets", "open_gzip"]

_GZIP = b"\x1f\x8b"
_PIECE = 1 << 16
_LONGEST = 1 << 28


class DamagedLogError(OSError):
    """Raised if a packed log is damaged or was cut off."""


class Readable(Protocol):
    """A stream that is read in pieces."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill a buffer; return the number of bytes, 0 at the end."""
        ...


class Blocks:
    """Fills buffers from a source that returns blocks of bytes."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read

    def readinto(self, buffer: memoryview, /) -> int:
        """Fill a buffer; return the number of bytes, 0 at the end."""
        block = self._read(len(buffer))
        buffer[: len(block)] = block
        return len(block)


def begins_packed(file: Any) -> bool:
    """Return true if a binary file begins like gzip."""
    file.seek(0)
    return file.read(2) == _GZIP


@contextmanager
def open_gzip(file: BinaryIO) -> Generator[Readable]:
    """Open a gzip file's content; reading raises `DamagedLogError` where it cannot be unpacked.

    The file is closed at the end.
    """
    # Imported here, since few logs are packed and each import slows down a short report.
    from gzip import BadGzipFile, GzipFile

    with file, GzipFile(fileobj=file) as content:

        def read(size: int) -> bytes:
            try:
                # `readinto` would lose its data at the point where the file was cut off.
                return content.read1(size)
            except (EOFError, BadGzipFile, zlib.error) as error:
                raise DamagedLogError(f"packed, and damaged: {error}") from error

        yield Blocks(read)


def lines_of(stream: Readable) -> Iterator[bytes]:
    """Yield lines as they arrive, without newlines; from an endless line only the beginning.

    After the readable part of a damaged log, `DamagedLogError` is raised.
    """
    return (line for _, line in lines_with_offsets(stream))


def lines_with_offsets(stream: Readable, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the same lines, each after its start in the log; `offset` is the stream's start, in bytes."""
    buffer, parts, length = bytearray(_PIECE), list[bytes](), 0
    damage: DamagedLogError | None = None
    while True:
        try:
            came = stream.readinto(memoryview(buffer)) or 0
        except DamagedLogError as error:
            came, damage = 0, error
        if not came:
            break
        first, *more = bytes(memoryview(buffer)[:came]).split(b"\n")
        if length < _LONGEST:
            parts.append(first)
        length += len(first)
        if more:
            yield offset, b"".join(parts)
            offset += length + 1
            for line in more[:-1]:
                yield offset, line
                offset += len(line) + 1
            parts, length = [more[-1]], len(more[-1])
    yield offset, b"".join(parts)
    if damage:
        raise damage
