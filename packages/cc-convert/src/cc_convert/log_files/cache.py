"""Cache scans in a private folder, so that only new lines have to be read.

An entry is valid for an unchanged file. If a file only grew, reading continues at the old end; after any other change
it starts again. A checksum over all that was read proves that. It is made when a file has changed for the first time,
so that a file which grows is read as a whole twice, and no other file takes longer. Entries for reports hold rows: ids,
counts, folder names, and session titles; entries for a search hold a log's texts.

A file of another user, or that others can write, counts as missing: it could have been made to harm the interpreter,
which reads marshal's format without checks.
"""

import marshal
import os
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO, FileIO
from typing import Any, NamedTuple, TypeAlias

from .amounts import Amounts
from .private_files import open_private, write_private
from .rows import FileScan, Ledger, Problem, make_row
from .store import Store

# Part of the path, so that no version reads another version's entry. Marshal's format depends on the interpreter.
_FORMAT = f"11-{sys.implementation.cache_tag}"
_MARSHAL_VERSION = 4
_PIECE = 1 << 20

Packed: TypeAlias = tuple[Any, ...]


class Identity(NamedTuple):
    """File identity, independent of the content."""

    size: int
    time: int
    inode: int


def identity_of(path: str) -> Identity:
    """Return a file's identity, or raise `OSError`."""
    status = os.stat(path)
    return Identity(status.st_size, status.st_mtime_ns, status.st_ino)


def default_cache_folder() -> str:
    """Return the folder for entries: `CC_CONVERT_CACHE`, or the user's cache folder."""
    if named := os.environ.get("CC_CONVERT_CACHE"):
        return os.path.expanduser(named)
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        root = os.path.expanduser("~/Library/Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(root, "cc-convert")


def dump_scan(scan: FileScan) -> bytes:
    """Return a scan as bytes, which any supported Python can read."""
    path, rows, ledgers, problems, *rest = scan
    # As plain tuples, which marshal needs.
    packed = (path, list(map(tuple, rows)), list(map(_packed, ledgers)), list(map(tuple, problems)), *rest)
    return marshal.dumps(packed, _MARSHAL_VERSION)


def load_scan(content: bytes) -> FileScan:
    """Return the scan in the bytes from `dump_scan`."""
    path, rows, ledgers, problems, *rest = marshal.loads(content)
    return FileScan(
        path,
        [make_row(row) for row in rows],
        [_unpacked(Ledger(*values)) for values in ledgers],
        [Problem(*values) for values in problems],
        *rest,
    )


def _packed(ledger: Ledger) -> Packed:
    return tuple(ledger._replace(totals={model: tuple(amounts) for model, amounts in ledger.totals.items()}))


def _unpacked(ledger: Ledger) -> Ledger:
    return ledger._replace(totals={model: Amounts(*numbers) for model, numbers in ledger.totals.items()})


class Cache:
    """A folder with entries that only this user can read.

    Cache errors never fail a report: an unreadable entry counts as missing, and a failed write is repeated
    another time.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = os.path.join(folder or default_cache_folder(), _FORMAT)
        self._scans = Store(self.folder)

    def get(self, path: str, current: Identity) -> tuple[FileScan | None, bool] | None:
        """Return a file's cached scan, and whether it is complete; no scan if the file changed, `None` if it is new."""
        with suppress(EOFError, ValueError, TypeError):
            if content := self._scans.get(path):
                stored, packed = marshal.loads(content)
                return _checked(path, Identity(*stored), current, load_scan(packed))
        return None

    def put(self, scans: Mapping[str, tuple[Identity, FileScan, bytes]]) -> None:
        """Store scans by path: the file identity, its scan, and the scan as bytes if these exist, see `dump_scan`."""
        # If the write fails, the logs are read again next time.
        with suppress(OSError):
            self._scans.add(
                {
                    path: marshal.dumps((tuple(identity), packed or dump_scan(scan)))
                    for path, (identity, scan, packed) in scans.items()
                }
            )

    def load(self, name: str) -> Any:
        """Return the value stored under a name, or `None`."""
        with suppress(OSError, EOFError, ValueError, TypeError):
            with open(self.path_of(name), "rb", opener=open_private) as file:
                content = file.read()
            if zlib.crc32(content[4:]) == int.from_bytes(content[:4], "big"):
                owner, value = marshal.loads(memoryview(content)[4:])
                return value if owner == name else None
        return None

    def store(self, name: str, value: Packed) -> None:
        """Store a value with plain types under a name; raise `OSError` if the folder cannot be written."""
        content = marshal.dumps((name, value))
        write_private(self.path_of(name), zlib.crc32(content).to_bytes(4, "big") + content)

    def close(self) -> None:
        """Close the files that `get` opened."""
        self._scans.close()

    def clear(self) -> None:
        """Remove all entries."""
        self.close()
        with suppress(OSError):
            for entry in os.listdir(self.folder):
                os.unlink(os.path.join(self.folder, entry))

    def path_of(self, name: str) -> str:
        """Return the file path for a name."""
        # Only a location: an entry names its log.
        content = os.fsencode(name)
        return os.path.join(self.folder, f"{zlib.crc32(content):08x}{zlib.crc32(content[::-1]):08x}")


class MemoryCache(Cache):
    """The same cache in memory, for a process that reads the same files repeatedly."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, tuple[Identity, FileScan]] = {}

    def get(self, path: str, current: Identity) -> tuple[FileScan | None, bool] | None:
        """Return a file's cached scan, and whether it is complete; no scan if the file changed, `None` if it is new."""
        entry = self._entries.get(path)
        return _checked(path, entry[0], current, entry[1]) if entry else None

    def put(self, scans: Mapping[str, tuple[Identity, FileScan, bytes]]) -> None:
        """Store scans."""
        self._entries |= {path: (identity, scan) for path, (identity, scan, _) in scans.items()}


def _checked(path: str, stored: Identity, current: Identity, scan: FileScan) -> tuple[FileScan | None, bool]:
    """Return a scan, and whether it is complete; no scan if the file did not only grow."""
    if stored == current:
        return scan, True
    # Files that are packed have no checksum, as they cannot be read from an offset on.
    if scan.checksum and only_grew(path, stored, current, scan.offset, scan.checksum):
        return scan, False
    return None, False


def only_grew(path: str, stored: Identity, current: Identity, offset: int, checksum: int) -> bool:
    """Return true if a file has the bytes before the offset that it had then, and perhaps more after them."""
    with suppress(OSError):
        return stored.inode == current.inode and offset <= current.size and checksum_of(path, offset) == checksum
    return False


def checksum_of(path: str, offset: int) -> int:
    """Return the checksum of a file's bytes before an offset."""
    with open(path, "rb", buffering=0) as file:
        return checksum_in(file, offset)


def checksum_in(file: FileIO | BytesIO, offset: int, start: int = 0, value: int = 0) -> int:
    """Return the same for an open file, whose checksum before `start` is `value`; never 0."""
    file.seek(start)
    while start < offset and (piece := file.read(min(_PIECE, offset - start))):
        value = zlib.crc32(piece, value)
        start += len(piece)
    return value or 1
