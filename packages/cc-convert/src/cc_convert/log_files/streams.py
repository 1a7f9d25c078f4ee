"""Byte streams from logs, packed or not, and the lines in them."""

import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, Protocol

_PACKERS = {
    b"\x1f\x8b": ("gzip", "gzip"),
    b"BZh": ("bzip2", "bz2"),
    b"\xfd7zXZ\x00": ("xz", "lzma"),
    b"\x28\xb5\x2f\xfd": ("zstd", "compression.zstd"),
}
MAGICS = tuple(_PACKERS)
"""First bytes of packed files."""
_MAGIC_LENGTH = max(map(len, MAGICS))
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
    """Return true if a binary file begins like one that gzip, zstd, bzip2 or xz packed."""
    file.seek(0)
    return file.read(_MAGIC_LENGTH).startswith(MAGICS)


@contextmanager
def open_packed(file: Any) -> Generator[Readable]:
    """Open a packed file's content; reading raises `DamagedLogError` where it cannot be unpacked.

    The file is closed at the end.
    """
    file.seek(0)
    beginning = file.read(_MAGIC_LENGTH)
    file.seek(0)
    name, module = next(packer for magic, packer in _PACKERS.items() if beginning.startswith(magic))
    with file:
        try:
            # Imported here, since few logs are packed and each import slows down a short report.
            content = import_module(module).open(file)
        except ModuleNotFoundError:
            yield Blocks(partial(_refuse, f"packed with {name}, which this Python cannot read: unpack it first"))
            return
        with content:
            yield Blocks(partial(_unpack, content))


def _unpack(content: Any, size: int) -> bytes:
    try:
        # `readinto` would lose its data at the point where the file was cut off.
        return content.read1(size)
    except (EOFError, OSError, ValueError, zlib.error) as error:
        raise DamagedLogError(f"packed, and damaged: {error}") from error
    except Exception as error:
        # The errors of lzma and zstd, which are not imported here.
        if type(error).__name__ in ("LZMAError", "ZstdError"):
            raise DamagedLogError(f"packed, and damaged: {error}") from error
        raise


def _refuse(reason: str, size: int) -> bytes:
    raise DamagedLogError(reason)


def lines_of(stream: Readable) -> Iterator[bytes]:
    """Yield lines as they arrive, without newlines; from an endless line only the beginning.

    After the readable part of a damaged log, `DamagedLogError` is raised.
    """
    return (line for _, line in lines_with_offsets(stream))


def lines_with_offsets(stream: Readable, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the same lines, each after its start in the log; `offset` is the stream start, in bytes."""
    buffer, parts, length = bytearray(_PIECE), list[bytes](), 0
    damage: DamagedLogError | None = None
    while True:
        try:
            came = stream.readinto(memoryview(buffer)) or 0
        except DamagedLogError as error:
            came, damage = 0, error
        if not came:
            break
        first_part, *more = bytes(memoryview(buffer)[:came]).split(b"\n")
        if length < _LONGEST:
            parts.append(first_part)
        length += len(first_part)
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
