"""The search itself: which passages of which logs have a text in them, and how they read."""

import os
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from ..cache import Cache
from ..files import Progress
from ..report.filters import Filter
from ..sources import is_packed, open_log
from ..streams import placed_lines
from .passages import ROLES, Context, Passage, Role, passages_of, small_letters
from .texts import LogText, Table, TextCache, read_text

__all__ = ["Found", "Match", "Query", "QueryError", "find_passages", "passage_of"]

# Another process costs some milliseconds, in which a first one reads about this much.
_WORTH_A_PROCESS = 4_000_000
# Each takes 4 bytes of a pipe, and all of them must fit in at once; 64 KiB is what the smallest pipes hold.
_MOST_JOBS = 8_000


class QueryError(ValueError):
    """A text that cannot be searched for."""


class Query:
    """What to look for. Capital letters make no difference.

    Args:
        text: The text, as it stands in a passage.
        regex: Whether it is a regular expression of Python's `re`; `^` and `$` are the ends of a line.
        chosen: Where to look. A model is that of any answer of the session.
        roles: Which passages to look at.

    Raises:
        QueryError: The text is empty, or no regular expression.
    """

    def __init__(
        self, text: str, *, regex: bool = False, chosen: Filter | None = None, roles: Sequence[Role] = ROLES
    ) -> None:
        if not text:
            raise QueryError("the text to search for is empty")
        try:
            self.pattern = re.compile(text if regex else re.escape(text), re.IGNORECASE | re.MULTILINE)
        except (re.error, RecursionError, OverflowError) as error:
            raise QueryError(f"{text!r} is no regular expression: {error}") from None
        self.small = b"" if regex else small_letters(text)
        # Texts are kept in small letters. A pattern that has no others finds the same in them, and is four times as
        # quick, where it need not look for both.
        same = text.encode("utf-8", "replace") == small_letters(text) and not re.search(r"\\[xu0-9]", text)
        self.pattern_of_small = re.compile(text, re.MULTILINE) if regex and same else self.pattern
        self.chosen, self.roles = chosen or Filter(), frozenset(ROLES.index(role) for role in roles)


class Match(NamedTuple):
    """A passage in which the text was found."""

    time: float
    """In seconds since 1970; 0 if none is known."""
    path: str
    """The log."""
    offset: int
    """Where its line starts, in bytes of the unpacked log."""
    ordinal: int
    """Which passage of the line it is, from 0."""
    role: Role
    context: Context
    folder: str
    """Where the session was started, which is where it can be resumed."""


class Found(NamedTuple):
    """What a search found."""

    matches: list[Match]
    """The newest first, as many as were asked for."""
    total: int
    """How many there are; a passage that a fork or a second log repeats is one."""
    lost: int
    """Lines that could not be read. Their text was searched as it stands."""
    failed: list[str]
    """Logs that could not be read, with the reason."""


def find_passages(
    logs: Mapping[str, str],
    query: Query,
    *,
    cache: Cache | None = None,
    processes: int = 1,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Found:
    """Search logs.

    Args:
        logs: The machine that a log comes from, by its path.
        query: What to look for.
        cache: Keeps the texts of the logs, so that next time only what is new is read.
        processes: How many may read at once. More than one needs a cache, `fork`, and no further threads.
        limit: How many matches to give; all by default.
        progress: Called now and then while logs are read.
    """
    texts = TextCache(cache) if cache else None
    if texts:
        texts.prune()
        _read_together([path for path in logs if _is_stale(path, texts)], texts, processes, progress)
    found: dict[object, tuple[float, int, _Place]] = {}
    failed: list[str] = []
    lost = 0
    for path, host in logs.items():
        try:
            text = _text_of(path, texts)
        except OSError as error:
            failed.append(f"{path}: {error.strerror or type(error).__name__}")
            continue
        lost += text.head.lost
        place: _Place | None = None
        for number in text.find(query.small) if query.small else range(len(text.table.starts)):
            place = place or _Place(path, host, text.table, query.chosen)
            if place.passes(number, query) and (query.small or query.pattern_of_small.search(text.text(number))):
                key = text.table.identities[number] or (path, number)
                found.setdefault(key, (text.table.times[number], number, place))
    newest = sorted(found.values(), key=itemgetter(0), reverse=True)[:limit]
    return Found([place.match(number) for _, number, place in newest], len(found), lost, failed)


def passage_of(match: Match) -> Passage | None:
    """The passage of a match, read from its log again; `None` if it is not there any more."""
    with suppress(OSError):
        # A packed log can only be read from its start.
        start = 0 if is_packed(match.path) else match.offset
        with open_log(match.path, start) as stream:
            line = next((line for at, line in placed_lines(stream, start) if at == match.offset), b"{}")
            found = passages_of(line)[match.ordinal : match.ordinal + 1]
            return found[0] if found and found[0].role == match.role else None
    return None


def _text_of(path: str, texts: TextCache | None) -> LogText:
    if texts is None:
        return read_text(path)
    kept, whole = texts.get(path)
    if kept is None or not whole:
        kept = read_text(path, kept)
        texts.put(kept)
    return kept


class _Place:
    """A log in which something was found, without its texts."""

    def __init__(self, path: str, host: str, table: Table, chosen: Filter) -> None:
        self._path, self._table = path, table
        self._contexts = [Context(*one)._replace(host=host) for one in table.known]
        self._allowed = _allowed(self._contexts, chosen)

    def passes(self, number: int, query: Query) -> bool:
        """Whether the query looks at a passage."""
        table, chosen = self._table, query.chosen
        if table.contexts[number] not in self._allowed or table.roles[number] not in query.roles:
            return False
        time = table.times[number]
        return (chosen.since is None or time >= chosen.since) and (chosen.until is None or 0 < time < chosen.until)

    def match(self, number: int) -> Match:
        """A passage that matches."""
        table, context = self._table, self._contexts[self._table.contexts[number]]
        # A session goes on in other folders, too, but is resumed in its first.
        folders = (one.project for one in self._contexts if one.session == context.session and one.project)
        role = ROLES[table.roles[number]]
        return Match(
            table.times[number], self._path, table.lines[number], table.ordinals[number], role, context,
            next(folders, ""),
        )  # fmt: skip


def _allowed(contexts: list[Context], chosen: Filter) -> set[int]:
    """The numbers of the contexts that pass. Only an answer has a model, so it counts for its whole session."""

    def passing(one: Filter) -> list[Context]:
        return one.of(contexts, lambda _: None)

    sessions = {context.session for context in passing(Filter(model=chosen.model))}
    found = set(passing(chosen._replace(model="", since=None, until=None)))
    return {number for number, one in enumerate(contexts) if one in found and one.session in sessions}


# --- reading by several processes


def _is_stale(path: str, texts: TextCache) -> bool:
    try:
        return not texts.is_whole(path)
    except OSError:
        return False  # which is reported when it is searched


def _read_together(stale: list[str], texts: TextCache, processes: int, progress: Progress | None) -> None:
    """Read logs into the cache."""
    sizes = {path: os.path.getsize(path) for path in stale if os.path.exists(path)}
    paths = sorted(sizes, key=lambda path: -sizes[path])
    done, whole = list(accumulate(sizes[path] for path in paths)), sum(sizes.values())
    step = len(paths) // _MOST_JOBS + 1
    jobs = [paths[start : start + step] for start in range(0, len(paths), step)]

    def work(number: int) -> None:
        for path in jobs[number]:
            with suppress(OSError):
                _text_of(path, texts)
        if progress:
            progress(done[min(number * step + step, len(done)) - 1], whole)

    threading = sys.modules.get("threading")
    if not hasattr(os, "fork") or (threading is not None and threading.active_count() > 1):
        processes = 1
    share_jobs(len(jobs), work, min(processes, whole // _WORTH_A_PROCESS + 1, len(jobs)))


def share_jobs(jobs: int, work: Callable[[int], None], processes: int) -> None:
    """Do jobs for their side effects, by number from 0, in this process and in forks of it.

    A fork that fails leaves its job undone. Forks end with the last job, also where this process was killed.
    """
    queue, fill = os.pipe()
    os.write(fill, b"".join(job.to_bytes(4, "big") for job in range(jobs)))
    os.close(fill)
    forks = [_fork(queue, work) for _ in range(processes - 1)]
    try:
        _work(queue, work)
    except BaseException:
        for fork in forks:
            os.kill(fork, signal.SIGKILL)
        raise
    finally:
        os.close(queue)
        for fork in forks:
            os.waitpid(fork, 0)


def _fork(queue: int, work: Callable[[int], None]) -> int:
    fork = os.fork()
    if fork == 0:
        # Nothing of the parent's may run here: no handlers at exit, no flushing of its buffers.
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            _work(queue, work)
        finally:
            os._exit(0)
    return fork


def _work(queue: int, work: Callable[[int], None]) -> None:
    while number := os.read(queue, 4):
        work(int.from_bytes(number, "big"))
