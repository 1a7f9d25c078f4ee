"""Store many entries in few files, since a file for each log takes longer to write than to read the log.

Each call to `add` writes one file, a pack: entries, then an index. Newer packs have precedence. Packs are merged
when newer packs together reach half an older pack's size, so there are few packs, and little in them is out of date.
"""

import marshal
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import BinaryIO, NamedTuple, TypeAlias

from .private_files import open_private, write_private

_SUFFIX = ".pack"
# Size and checksum of the index, at a pack's end.
_TAIL = 12

_Index: TypeAlias = dict[str, tuple[int, int, int]]
"""Each entry's offset, size and checksum, by name."""


class _Pack(NamedTuple):
    file: BinaryIO
    entries: _Index

    def read(self, name: str) -> bytes | None:
        """Return an entry; `None` if it is damaged."""
        offset, size, checksum = self.entries[name]
        self.file.seek(offset)
        content = self.file.read(size)
        return content if zlib.crc32(content) == checksum else None


class Store:
    """Entries by the path of the file that they are about. An unreadable entry counts as missing."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    @cached_property
    def _packs(self) -> dict[str, _Pack]:
        """The packs by file name, oldest first."""
        packs: dict[str, _Pack] = {}
        with suppress(OSError):
            for name in sorted(os.listdir(self._folder)):
                if name.endswith(_SUFFIX) and (pack := _open_pack(os.path.join(self._folder, name))):
                    packs[name] = pack
        return packs

    @cached_property
    def _places(self) -> dict[str, _Pack]:
        return {name: pack for pack in self._packs.values() for name in pack.entries}

    def get(self, name: str) -> bytes | None:
        """Return the entry under a name, if there is one."""
        pack = self._places.get(name)
        with suppress(OSError):
            return pack.read(name) if pack else None
        return None

    def add(self, entries: Mapping[str, bytes]) -> None:
        """Write entries, which replace older ones under the same names; raise `OSError` if that fails."""
        size, merged = sum(map(len, entries.values())), list[str]()
        for name, pack in reversed(self._packs.items()):
            older = sum(entry_size for _, entry_size, _ in pack.entries.values())
            if older > 2 * size:
                break
            size += older
            merged.append(name)
        older_entries: dict[str, bytes] = {}
        for name in reversed(merged):
            pack = self._packs[name]
            current = [path for path in pack.entries if self._places[path] is pack and path not in entries]
            # A deleted log takes its entry with it.
            current = [path for path in current if os.path.exists(path)]
            older_entries |= {path: content for path in current if (content := pack.read(path))}
        number = max((int(name[:8]) for name in self._packs), default=0) + 1
        content = _pack_entries({**older_entries, **entries})
        self.close()
        write_private(os.path.join(self._folder, f"{number:08}-{os.getpid()}{_SUFFIX}"), content)
        for name in merged:
            with suppress(OSError):
                os.unlink(os.path.join(self._folder, name))

    def close(self) -> None:
        """Close the files; the next call opens those that are there then."""
        for pack in self.__dict__.pop("_packs", {}).values():
            pack.file.close()
        self.__dict__.pop("_places", None)


def _pack_entries(entries: Mapping[str, bytes]) -> bytes:
    index: _Index = {}
    offset = 0
    for name, content in entries.items():
        index[name] = (offset, len(content), zlib.crc32(content))
        offset += len(content)
    end = marshal.dumps(index)
    return b"".join([*entries.values(), end, len(end).to_bytes(8, "big"), zlib.crc32(end).to_bytes(4, "big")])


def _open_pack(path: str) -> _Pack | None:
    file = None
    with suppress(OSError, EOFError, ValueError, TypeError):
        file = open(path, "rb", buffering=0, opener=open_private)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        tail = file.read(_TAIL)
        length, checksum = int.from_bytes(tail[:8], "big"), int.from_bytes(tail[8:], "big")
        if length <= size - _TAIL:
            file.seek(size - _TAIL - length)
            end = file.read(length)
            if zlib.crc32(end) == checksum:
                return _Pack(file, marshal.loads(end))
    if file:
        file.close()
    return None
