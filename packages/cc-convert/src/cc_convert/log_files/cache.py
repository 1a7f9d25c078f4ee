"""Cache of scanned logs in a private folder, so that only new lines have to be read.

An entry is valid for a file with the same inode and an unchanged beginning. If the file only grew, reading continues
at the old end; after any other change it starts again. Entries of reports hold rows: ids, counts, names of folders, and
titles of sessions; entries of a search hold the texts of a log.
"""

import marshal
import os
import sys
import zlib
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias

from ..rows import FileScan, Ledger, Problem, make_row

__all__ = [
    "Cache",
    "Identity",
    "MemoryCache",
    "default_cache_folder",
    "edges_of",
    "identity_of",
    "pack_scan",
    "unpack_scan",
    "write_private",
]

# Part of the path, so that no version reads an entry of another one. Marshal's format depends on the interpreter.
_FORMAT = f"5-{sys.implementation.cache_tag}"
_EDGE = 256


Packed: TypeAlias = tuple[Any, ...]


class Identity(NamedTuple):
    """Identity of a file, independent of its content."""

    size: int
    time: int
    inode: int


def identity_of(path: str) -> Identity:
    """Return the identity of a file.

    Raises:
        OSError: The file's metadata cannot be read.
    """
    status = os.stat(path)
    return Identity(status.st_size, status.st_mtime_ns, status.st_ino)


def default_cache_folder() -> str:
    """Return the folder of the entries: `CC_CONVERT_CACHE`, or the user's cache folder."""
    if named := os.environ.get("CC_CONVERT_CACHE"):
        return os.path.expanduser(named)
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        root = os.path.expanduser("~/Library/Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(root, "cc-convert")


def pack_scan(scan: FileScan) -> Packed:
    """Return a scan as plain tuples, as `marshal` needs."""
    path, rows, ledgers, problems, *rest = scan
    return (path, list(map(tuple, rows)), list(map(tuple, ledgers)), list(map(tuple, problems)), *rest)


def unpack_scan(packed: Packed) -> FileScan:
    """Return the scan of packed tuples."""
    path, rows, ledgers, problems, *rest = packed
    return FileScan(
        path,
        [make_row(row) for row in rows],
        [Ledger(*one) for one in ledgers],
        [Problem(*one) for one in problems],
        *rest,
    )


class Cache:
    """A folder with entries that only this user can read.

    Errors of the cache never fail a report: an unreadable entry counts as missing, and a failed write is repeated
    another time.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = os.path.join(folder or default_cache_folder(), _FORMAT)

    def get(self, path: str, now: Identity) -> tuple[FileScan, bool] | None:
        """Return the cached scan of a file, and whether it is complete; `None` without a valid entry."""
        entry = self.load(path)
        if entry is None:
            return None
        then, first, last, packed = entry
        scan = unpack_scan(packed)
        if then == tuple(now):
            return scan, True
        return self._continued(path, Identity(*then), now, (first, last), scan)

    @staticmethod
    def _continued(
        path: str, then: Identity, now: Identity, edges: tuple[int, int], scan: FileScan
    ) -> tuple[FileScan, bool] | None:
        # A packed file, or one rewritten in place, cannot be read from an offset on.
        if then.inode != now.inode or now.size < scan.offset or scan.size > then.size:
            return None
        try:
            return (scan, False) if edges_of(path, scan.offset) == edges else None
        except OSError:
            return None

    def put(self, path: str, identity: Identity, scan: FileScan) -> None:
        """Store the scan of a file."""
        with suppress(OSError):
            first, last = edges_of(path, scan.offset)
            self.store(path, (tuple(identity), first, last, pack_scan(scan)))

    def load(self, name: str) -> Any:
        """Return the value stored under a name, or `None`."""
        with suppress(OSError, EOFError, ValueError, TypeError):
            with open(self.path_of(name), "rb") as file:
                content = file.read()
            if zlib.crc32(content[4:]) == int.from_bytes(content[:4], "big"):
                kept, value = marshal.loads(memoryview(content)[4:])
                return value if kept == name else None
        return None

    def store(self, name: str, value: Packed) -> None:
        """Store a value of plain types under a name.

        Raises:
            OSError: The folder cannot be written.
        """
        content = marshal.dumps((name, value))
        write_private(self.path_of(name), zlib.crc32(content).to_bytes(4, "big") + content)

    def clear(self) -> None:
        """Remove all entries."""
        with suppress(OSError):
            for entry in os.listdir(self.folder):
                os.unlink(os.path.join(self.folder, entry))

    def path_of(self, name: str) -> str:
        """Return the path of the file for a name."""
        # Only a location: an entry names its log.
        content = os.fsencode(name)
        return os.path.join(self.folder, f"{zlib.crc32(content):08x}{zlib.crc32(content[::-1]):08x}")


class MemoryCache(Cache):
    """The same cache for one process, which reads the same files repeatedly."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, tuple[Identity, tuple[int, int], FileScan]] = {}

    def get(self, path: str, now: Identity) -> tuple[FileScan, bool] | None:
        """Return the cached scan of a file, and whether it is complete; `None` without a valid entry."""
        if path not in self._kept:
            return None
        then, edges, scan = self._kept[path]
        return (scan, True) if then == now else self._continued(path, then, now, edges, scan)

    def put(self, path: str, identity: Identity, scan: FileScan) -> None:
        """Store the scan of a file."""
        with suppress(OSError):
            self._kept[path] = (identity, edges_of(path, scan.offset), scan)


def write_private(path: str, content: bytes) -> None:
    """Write a file and its folder, readable by this user only.

    Raises:
        OSError: It cannot be written.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    # Written to a file of this process and renamed: there is never a partial entry.
    temporary = f"{path}.{os.getpid()}"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def edges_of(path: str, offset: int) -> tuple[int, int]:
    """Return checksums of the file's beginning and of the end of the part that was read."""
    with open(path, "rb", buffering=0) as file:
        first = file.read(min(_EDGE, offset))
        file.seek(max(0, offset - _EDGE))
        last = file.read(min(_EDGE, offset))
    return zlib.crc32(first), zlib.crc32(last)
