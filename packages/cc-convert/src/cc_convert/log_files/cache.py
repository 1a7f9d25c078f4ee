"""What was read of a log before, kept in a private folder, so that only what is new has to be read.

An entry holds for a file of the same inode whose beginning is as it was. If only more came, reading goes on where it
stopped; any other change means reading anew. Entries of reports hold rows: ids, counts, names of folders, and titles
of sessions; those of a search hold the texts of a log.
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

# Part of the path, so that no version reads what another one wrote. Marshal's format belongs to the interpreter.
_FORMAT = f"3-{sys.implementation.cache_tag}"
_EDGE = 256


Packed: TypeAlias = tuple[Any, ...]


class Identity(NamedTuple):
    """What a file is, apart from its content."""

    size: int
    time: int
    inode: int


def identity_of(path: str) -> Identity:
    """The identity of a file.

    Raises:
        OSError: It cannot be looked at.
    """
    status = os.stat(path)
    return Identity(status.st_size, status.st_mtime_ns, status.st_ino)


def default_cache_folder() -> str:
    """Where entries are kept: `CC_CONVERT_CACHE`, or the user's folder for caches."""
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
    """A scan as plain tuples, which is all that `marshal` takes."""
    path, rows, ledgers, problems, *rest = scan
    return (path, list(map(tuple, rows)), list(map(tuple, ledgers)), list(map(tuple, problems)), *rest)


def unpack_scan(packed: Packed) -> FileScan:
    """The scan that was packed."""
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

    What goes wrong with it never fails a report: an entry that cannot be read is none, and one that cannot be written
    is written another time.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = os.path.join(folder or default_cache_folder(), _FORMAT)

    def get(self, path: str, now: Identity) -> tuple[FileScan, bool] | None:
        """What was read of a file, and whether that is all there is; `None` if the file is not what it was."""
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
        # A file that is packed, or was rewritten in place, cannot be read on.
        if then.inode != now.inode or now.size < scan.offset or scan.size > then.size:
            return None
        try:
            return (scan, False) if edges_of(path, scan.offset) == edges else None
        except OSError:
            return None

    def put(self, path: str, identity: Identity, scan: FileScan) -> None:
        """Keep what was read of a file."""
        with suppress(OSError):
            first, last = edges_of(path, scan.offset)
            self.store(path, (tuple(identity), first, last, pack_scan(scan)))

    def load(self, name: str) -> Any:
        """The value that is kept under a name; `None` if there is none."""
        with suppress(OSError, EOFError, ValueError, TypeError):
            with open(self.path_of(name), "rb") as file:
                content = file.read()
            if zlib.crc32(content[4:]) == int.from_bytes(content[:4], "big"):
                kept, value = marshal.loads(memoryview(content)[4:])
                return value if kept == name else None
        return None

    def store(self, name: str, value: Packed) -> None:
        """Keep a value of plain types under a name.

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
        # No more than a place: an entry says whose it is.
        content = os.fsencode(name)
        return os.path.join(self.folder, f"{zlib.crc32(content):08x}{zlib.crc32(content[::-1]):08x}")


class MemoryCache(Cache):
    """The same for one process, which keeps looking at the same files."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, tuple[Identity, tuple[int, int], FileScan]] = {}

    def get(self, path: str, now: Identity) -> tuple[FileScan, bool] | None:
        """What was read of a file, and whether that is all there is; `None` if the file is not what it was."""
        if path not in self._kept:
            return None
        then, edges, scan = self._kept[path]
        return (scan, True) if then == now else self._continued(path, then, now, edges, scan)

    def put(self, path: str, identity: Identity, scan: FileScan) -> None:
        """Keep what was read of a file."""
        with suppress(OSError):
            self._kept[path] = (identity, edges_of(path, scan.offset), scan)


def write_private(path: str, content: bytes) -> None:
    """Write a file, and its folder, that only this user can read.

    Raises:
        OSError: It cannot be written.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    # A file of this process alone, which a rename puts in place: there is never half an entry.
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
    """Sums over the beginning of a file and over the end of what was read of it."""
    with open(path, "rb", buffering=0) as file:
        first = file.read(min(_EDGE, offset))
        file.seek(max(0, offset - _EDGE))
        last = file.read(min(_EDGE, offset))
    return zlib.crc32(first), zlib.crc32(last)
