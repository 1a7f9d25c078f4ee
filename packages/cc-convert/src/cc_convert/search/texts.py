"""Cache a log's texts in lower case, one after another: a search is one pass over memory.

Measured with a gigabyte, building takes little more time than decoding the lines, and a search half a second.
SQLite's FTS5 finds word parts only with its trigram tokenizer, which takes over ten times as long to build.

An entry is valid as long as a report entry, see `cache`. It is deleted after its log was deleted.
"""

import marshal
import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

from ..log_files.cache import Cache, Identity, checksum_of, identity_of, only_grew
from ..log_files.private_files import write_private
from ..log_files.sources import is_packed, open_log
from ..log_files.streams import DamagedLogError, lines_with_offsets
from .passages import ROLES, Context, Passage, passages_of, small_letters

_END = b"\0"
"""Separator after each text; no match spans two texts."""
_SUFFIX = ".text"
_SIZE = 4


class _Head(NamedTuple):
    """An entry's first part."""

    path: str
    identity: tuple[int, ...]
    offset: int
    """Offset in the log after the last complete line."""
    checksum: int
    lost: int
    """Number of lines that are not JSON."""
    size: int
    """Size of all texts in bytes."""


class Table(NamedTuple):
    """An entry's last part: metadata for the passages, one list per field."""

    starts: list[int]
    """Text start, in bytes of all texts."""
    lines: list[int]
    """Line start, in bytes of the log."""
    ordinals: list[int]
    """Number of the passage in its line, from 0."""
    roles: list[int]
    times: list[float]
    """In seconds since 1970; 0 if unknown."""
    contexts: list[int]
    identities: list[int]
    """Hash of the record UUID and the ordinal, equal in a fork; 0 without a UUID."""
    distinct_contexts: list[tuple[str, ...]]
    """The contexts, in order of first use."""


class LogText:
    """A log's texts, from a cache entry; other content raises `ValueError`."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        start = _SIZE + int.from_bytes(content[:_SIZE], "big")
        try:
            self.head = _Head(*marshal.loads(content[_SIZE:start]))
        except (EOFError, TypeError) as error:
            raise ValueError("no entry") from error
        self._start, self._stop = start, start + self.head.size

    @cached_property
    def table(self) -> Table:
        """Metadata for the passages."""
        return Table(*marshal.loads(memoryview(self.content)[self._stop :]))

    def find(self, small: bytes) -> Iterator[int]:
        """Yield the numbers, from 0, of passages that contain a text in lower case."""
        find, number = self.content.find, 0
        at = find(small, self._start, self._stop)
        while at >= 0:
            number = bisect_right(self.table.starts, at - self._start, number) - 1
            yield number
            at = find(small, self._end(number), self._stop)

    def text(self, number: int) -> str:
        """Return a passage text in lower case."""
        start = self._start + self.table.starts[number]
        return str(memoryview(self.content)[start : self._end(number) - len(_END)], "utf-8")

    def _end(self, number: int) -> int:
        starts = self.table.starts
        return self._start + starts[number + 1] if number + 1 < len(starts) else self._stop

    @property
    def texts(self) -> bytes:
        """All texts with their separators."""
        return self.content[self._start : self._stop]


class _Builder:
    def __init__(self, earlier_text: LogText | None) -> None:
        self._texts = [earlier_text.texts] if earlier_text else []
        self._size = earlier_text.head.size if earlier_text else 0
        self.lost = earlier_text.head.lost if earlier_text else 0
        self._table = earlier_text.table if earlier_text else Table([], [], [], [], [], [], [], [])
        contexts = [Context(*values) for values in self._table.distinct_contexts]
        self._numbers = {context: number for number, context in enumerate(contexts)}
        self._latest = {context.session: context for context in contexts}
        self._last_context = contexts[self._table.contexts[-1]] if self._table.contexts else Context(*[""] * 8)
        self._time = self._table.times[-1] if self._table.times else 0.0

    def add(self, line: bytes, offset: int, passages: list[Passage]) -> None:
        table = self._table
        for ordinal, passage in enumerate(passages):
            context = self._whole(passage.context)
            self._time = passage.time or self._time
            self.lost += passage.role == "unreadable"
            if passage.text:
                text = small_letters(passage.text) + _END
                table.starts.append(self._size)
                table.lines.append(offset)
                table.ordinals.append(ordinal)
                table.roles.append(ROLES.index(passage.role))
                table.times.append(self._time)
                table.contexts.append(self._numbers.setdefault(context, len(self._numbers)))
                table.identities.append(_short(passage, ordinal))
                self._texts.append(text)
                self._size += len(text)

    def _whole(self, context: Context | None) -> Context:
        """Complete a context from the lines before: stream-json names the folder only once."""
        if context is None:
            return self._last_context._replace(model="")
        latest = self._latest.get(context.session)
        if not context.project and latest:
            context = latest._replace(agent=context.agent, model=context.model)
        self._latest[context.session] = self._last_context = context
        return context

    def entry(self, path: str, identity: Identity, offset: int) -> bytes:
        head = marshal.dumps((path, tuple(identity), offset, checksum_of(path, offset), self.lost, self._size))
        table = marshal.dumps((*self._table[:-1], [tuple(context) for context in self._numbers]))
        return b"".join([len(head).to_bytes(_SIZE, "big"), head, *self._texts, table])


def _short(passage: Passage, ordinal: int) -> int:
    if not passage.identity:
        return 0
    name = f"{passage.identity}:{ordinal}".encode("utf-8", "replace")
    return int.from_bytes(blake2b(name, digest_size=7).digest(), "big")


def read_text(path: str, earlier_text: LogText | None = None) -> LogText:
    """Read a log's texts; after those of an earlier version, only later lines."""
    identity, builder = identity_of(path), _Builder(earlier_text)
    offset = earlier_text.head.offset if earlier_text else 0
    at, line = offset, b""
    with open_log(path, offset) as stream, suppress(DamagedLogError):
        started = False
        for at, following in lines_with_offsets(stream, offset):
            if started:
                builder.add(line, offset, passages_of(line) if line.strip() else [])
            started, offset, line = True, at, following
    # The last line has no newline: a whole record, or a record that is still being written.
    if line.strip() and (passages := passages_of(line)) and passages[0].role != "unreadable":
        builder.add(line, offset, passages)
        offset += len(line)
    return LogText(builder.entry(path, identity, 0 if is_packed(path) else offset))


class TextCache:
    """Stores texts in a cache folder, readable by this user only."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def read(self, path: str) -> LogText:
        """Return a log's texts. Only lines that are not in a valid entry are read, and then stored."""
        current, earlier_text = identity_of(path), None
        with suppress(OSError, ValueError):
            with open(self._place(path), "rb") as file:
                entry = LogText(file.read())
            head, stored = entry.head, Identity(*entry.head.identity)
            if head.path == path and stored == current:
                return entry
            if head.path == path and head.offset and only_grew(path, stored, current, head.offset, head.checksum):
                earlier_text = entry
        text = read_text(path, earlier_text)
        # After a failed write the next search reads the log again.
        with suppress(OSError):
            write_private(self._place(path), text.content)
        return text

    def is_whole(self, path: str) -> bool:
        """Return true if a valid entry covers the whole log."""
        head = _head_in(self._place(path))
        return head is not None and head.path == path and head.identity == tuple(identity_of(path))

    def prune(self) -> None:
        """Delete the entries for logs that do not exist any more."""
        with suppress(OSError):
            for entry in os.scandir(self._cache.folder):
                if entry.name.endswith(_SUFFIX):
                    head = _head_in(entry.path)
                    if head is None or not os.path.exists(head.path):
                        os.unlink(entry.path)

    def _place(self, path: str) -> str:
        return self._cache.path_of(path) + _SUFFIX


def _head_in(place: str) -> _Head | None:
    with suppress(OSError, ValueError), open(place, "rb") as file:
        size = file.read(_SIZE)
        return LogText(size + file.read(int.from_bytes(size, "big"))).head
    return None
