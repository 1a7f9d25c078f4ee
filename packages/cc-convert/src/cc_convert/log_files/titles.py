"""Find session titles: the title in the log, else the first prompt.

Only both ends of a log are read, as Claude Code does: it writes the title again whenever a session is resumed.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TypeAlias, cast

from .archive import ARCHIVED
from .cache import Cache, Identity, identity_of
from .decode import decode_line
from .events import events_of, text_or_empty
from .extract import session_of
from .fields import Record, checked_record
from .sources import STDIN, is_packed, open_log
from .streams import DamagedLogError, Readable, lines_of, lines_with_offsets

Titles: TypeAlias = dict[str, tuple[int, str]]
"""By session: rank and text of the best title."""
_Entry: TypeAlias = tuple[tuple[int, ...], Titles]

_HEAD = 1 << 20
"""The first prompt starts within this many bytes."""
_EDGE = 1 << 16
"""Titles are within this many bytes from both ends."""
_FIELD = b'itle"'
_MOST_CHARACTERS = 200
_PROMPT, _COMMAND = 1, 0
_TITLE_FIELDS = {"custom-title": ("customTitle", 3), "ai-title": ("aiTitle", 2), ARCHIVED: ("title", _PROMPT)}
"""Kinds of title records: field, and rank. The user's own title outranks a generated title."""
_ARCHIVED = f'"{ARCHIVED}"'.encode()
_COMMAND_NAME = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
# Texts that the CLI writes instead of a prompt, and those in the place of a picture or a document.
_NO_PROMPT = re.compile(
    r"\s*(<(local-command-|session-start-hook>|tick>|goal>|system-reminder>|ide_opened_file>|ide_selection>)"
    r"|\[Request interrupted by user|\[(image|document)\]$|Caveat: The messages below)"
)


def read_titles(paths: Iterable[str], cache: Cache | None = None, name: str = "titles") -> dict[str, str]:
    """Return titles by session, each in one line with at most 200 characters.

    Unreadable logs and the standard input are skipped. With a cache, in which `name` is the key, only changed files are
    opened.
    """
    entries = cast("tuple[dict[str, _Entry]]", (cache and cache.load(name)) or ({},))[0]
    current: dict[str, _Entry] = {}
    for path in paths:
        with suppress(OSError):
            if path != STDIN:
                identity = identity_of(path)
                entry = entries.get(path)
                current[path] = entry if entry and entry[0] == tuple(identity) else _read(path, identity)
    if cache and current != entries:
        with suppress(OSError):
            cache.store(name, (current,))
    return best_titles(titles for _, titles in current.values())


def best_titles(found_in_logs: Iterable[Titles]) -> dict[str, str]:
    """Return each session title with the highest rank."""
    best: Titles = {}
    for titles in found_in_logs:
        for session, title in titles.items():
            if session not in best or title[0] > best[session][0]:
                best[session] = title
    return {session: title for session, (_, title) in best.items()}


def _read(path: str, identity: Identity) -> _Entry:
    return tuple(identity), find_titles(partial(open_log, path), 0 if is_packed(path) else identity.size)


def find_titles(open_at: Callable[[int], AbstractContextManager[Readable]], size: int) -> Titles:
    """Return the titles at a log's ends. The size in bytes is 0 if it can be read from the start only."""
    titles: Titles = {}
    started, archived, at = False, False, 0
    with open_at(0) as stream, suppress(DamagedLogError):
        for at, line in lines_with_offsets(stream):
            archived = archived or (at == 0 and _ARCHIVED in line)
            if at >= (_EDGE if started else _HEAD) and not archived:
                break
            if _FIELD in line or not (started or archived):
                _note(line, titles)
                started = any(rank >= _PROMPT for rank, _ in titles.values())
    end = size if archived else max(at, size - _EDGE)
    if end < size:
        with open_at(end) as stream:
            for line in lines_of(stream):
                if _FIELD in line:
                    _note(line, titles)
    return titles


def _note(line: bytes, titles: Titles) -> None:
    for record in decode_line(line).records:
        title = _title_of(record)
        session = text_or_empty(record.get("session")) or session_of(checked_record(record)[0])
        if title and session:
            best = titles.get(session, (-1, ""))
            # A later title replaces an earlier title, but the first prompt stays the first.
            if title[0] > best[0] or (title[0] == best[0] > _PROMPT):
                titles[session] = title


def _title_of(record: Record) -> tuple[int, str] | None:
    if noted := _TITLE_FIELDS.get(text_or_empty(record.get("type"))):
        title = noted_title(record)
        return (noted[1], title) if title else None
    if record.get("isSidechain") is True:
        return None
    for event in events_of(record):
        if event.kind == "prompt" and not event.agent and not _NO_PROMPT.match(event.text) and event.text.strip():
            command = _COMMAND_NAME.search(event.text)
            return (_COMMAND, _one_line(command[1])) if command else (_PROMPT, _one_line(event.text))
    return None


def noted_title(record: Record) -> str:
    """Return the title in a title record; empty for other records."""
    noted = _TITLE_FIELDS.get(text_or_empty(record.get("type")))
    return _one_line(text_or_empty(record.get(noted[0]))) if noted else ""


def _one_line(text: str) -> str:
    return " ".join(text[: 8 * _MOST_CHARACTERS].split())[:_MOST_CHARACTERS]
