"""Search logs for a text: matches, newest first, and their passages."""

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple

from ..forks import group_by_size, share_jobs
from ..log_files.cache import Cache
from ..log_files.files import Progress
from ..log_files.sources import is_packed, open_log
from ..log_files.streams import lines_with_offsets
from ..report.filters import Filter, FilterError
from .passages import ROLES, Context, Passage, Role, passages_of, small_letters
from .texts import Table, TextCache, read_text

# Starting a process takes milliseconds; the first process reads about this many bytes in this time.
_WORTH_A_PROCESS = 4_000_000


class QueryError(FilterError):
    """Raised for an empty text and for an invalid regular expression."""


class Query:
    """A text or a pattern to search for, ignoring case, and the search filters.

    Args:
        text: The text, as in a passage.
        regex: Take it as a regular expression for Python's `re`; `^` and `$` are the ends of a line.
        chosen: Filter by session, time and place. A model matches if any answer in the session has it.
        roles: Kinds of passages to search.

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
            raise QueryError(f"{text!r} is not a regular expression: {error}") from None
        self.small = b"" if regex else small_letters(text)
        # Cached texts are in lower case. A pattern in lower case finds the same without IGNORECASE, four times as fast.
        is_literal = text.encode("utf-8", "replace") == small_letters(text) and not re.search(r"\\[xu0-9]", text)
        # The cached texts have accents apart from their letters.
        apart = text if text.isascii() else unicodedata.normalize("NFD", text)
        options = re.MULTILINE if is_literal else re.MULTILINE | re.IGNORECASE
        self.pattern_of_small = re.compile(apart, options) if regex else self.pattern
        self.chosen, self.roles = chosen or Filter(), frozenset(ROLES.index(role) for role in roles)


class Match(NamedTuple):
    """A passage that contains the text."""

    time: float
    """In seconds since 1970; 0 if none is known."""
    path: str
    offset: int
    """Start of the line in the log, in unpacked bytes."""
    ordinal: int
    """Number of the passage in its line, from 0."""
    role: Role
    context: Context
    folder: str
    """Working folder at the session start; `claude --resume` needs it."""


class SearchResult(NamedTuple):
    """Result of a search."""

    matches: list[Match]
    """Newest first, at most `limit`."""
    total: int
    """Number of matches. A passage that a fork or a second log repeats counts once."""
    lost: int
    """Number of lines that are not JSON. Their raw text was searched."""
    failed: list[str]
    """Logs that could not be read, each with the reason."""


def find_passages(
    logs: Mapping[str, str],
    query: Query,
    *,
    cache: Cache | None = None,
    processes: int = 1,
    limit: int | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Search logs, which are the keys; the values are their machines.

    With a cache, the next search reads only new lines. More than one process needs a cache, `fork` and no threads.
    """
    texts = TextCache(cache) if cache else None
    if texts:
        texts.prune()
        _read_together(logs, texts, processes, progress)
    earlier_ids: set[int] = set()
    newest: list[tuple[float, int, _Place]] = []
    failed: list[str] = []
    lost_count = total = 0
    for path, host in logs.items():
        try:
            text = texts.read(path) if texts else read_text(path)
        except OSError as error:
            failed.append(f"{path}: {error.strerror or type(error).__name__}")
            continue
        lost_count += text.head.lost
        numbers = list(text.find(query.small)) if query.small else range(len(text.table.starts))
        if not numbers:
            continue
        place = _Place(path, host, text.table, query)
        numbers = [number for number in numbers if place.passes(number)]
        if not query.small:
            numbers = [number for number in numbers if query.pattern_of_small.search(text.text(number))]
        identities = text.table.identities
        new_numbers = {identities[number] or ~number: number for number in reversed(numbers)}
        for identity in earlier_ids.intersection(new_numbers):
            del new_numbers[identity]
        earlier_ids.update(identity for identity in new_numbers if identity > 0)
        total += len(new_numbers)
        newest += [(text.table.times[number], number, place) for number in new_numbers.values()]
        newest = sorted(newest, key=itemgetter(0), reverse=True)[:limit]
    return SearchResult([place.match(number) for _, number, place in newest], total, lost_count, failed)


def passage_of(match: Match) -> Passage | None:
    """Read a match's passage from the log; `None` if the log has changed."""
    with suppress(OSError):
        # A packed log can be read from the start only.
        start = 0 if is_packed(match.path) else match.offset
        with open_log(match.path, start) as stream:
            line = next((line for at, line in lines_with_offsets(stream, start) if at == match.offset), b"{}")
            passages = passages_of(line)[match.ordinal : match.ordinal + 1]
            return passages[0] if passages and passages[0].role == match.role else None
    return None


class _Place:
    """Metadata for a log with matches, without texts."""

    def __init__(self, path: str, host: str, table: Table, query: Query) -> None:
        self._path, self._table, self._roles = path, table, query.roles
        self._contexts = [Context(*values)._replace(host=host) for values in table.distinct_contexts]
        self._allowed = _allowed(self._contexts, query.chosen)
        since, until = query.chosen.since, query.chosen.until
        # A passage without a time has 0; it passes only if no bound is set.
        self._since = since or (0.0 if until is None else 1.0)
        self._until = float("inf") if until is None else until

    def passes(self, number: int) -> bool:
        table = self._table
        is_chosen = table.contexts[number] in self._allowed and table.roles[number] in self._roles
        return is_chosen and self._since <= table.times[number] < self._until

    def match(self, number: int) -> Match:
        table, context = self._table, self._contexts[self._table.contexts[number]]
        # A session may go on in other folders, but it is resumed in the first folder.
        folders = (
            candidate.project
            for candidate in self._contexts
            if candidate.session == context.session and candidate.project
        )
        role = ROLES[table.roles[number]]
        return Match(
            table.times[number], self._path, table.lines[number], table.ordinals[number], role, context,
            next(folders, ""),
        )  # fmt: skip


def _allowed(contexts: list[Context], chosen: Filter) -> set[int]:
    """Return the numbers of the contexts that pass. Only answers have a model; it counts for the whole session."""

    def passing(selection: Filter) -> list[Context]:
        return selection.select(contexts, lambda _: None)

    sessions = {context.session for context in passing(Filter(model=chosen.model))}
    allowed = set(passing(chosen._replace(model="", since=None, until=None)))
    return {number for number, context in enumerate(contexts) if context in allowed and context.session in sessions}


# --- reading by several processes


def _read_together(logs: Iterable[str], texts: TextCache, processes: int, progress: Progress | None) -> None:
    """Read new and changed logs into the cache, by several processes if that pays."""
    sizes: dict[str, int] = {}
    for path in logs:
        with suppress(OSError):  # reported during the search
            if not texts.is_whole(path):
                sizes[path] = os.path.getsize(path)
    total = sum(sizes.values())
    groups = group_by_size(sorted(sizes.items(), key=lambda item: -item[1]), 1)
    # Each job, with the bytes done after it.
    jobs = list(zip(groups, accumulate(sum(sizes[path] for path in paths) for paths in groups), strict=True))

    def read(job: tuple[list[str], int]) -> None:
        paths, finished = job
        for path in paths:
            with suppress(OSError):
                texts.read(path)
        if progress:
            progress(finished, total)

    share_jobs(jobs, read, min(processes, total // _WORTH_A_PROCESS + 1))
