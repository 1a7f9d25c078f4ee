"""Code that commands share: from options to rows, or to buckets where these are enough."""

import marshal
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, tzinfo
from functools import partial
from typing import NamedTuple, TypeAlias

from ..log_files.cache import Cache, Identity, Packed
from ..log_files.files import Progress, identities_of, read_files
from ..log_files.model_names import canonical_model
from ..log_files.rows import FileScan, Row
from ..log_files.sources import default_folders, find_logs, hosts_of, missing_places
from ..logs import Logs, read_log_files
from ..prices import Prices
from ..report.buckets import Bucket, fill_buckets
from ..report.filters import Filter, FilteredT, FilterError, last_days, moment
from ..report.lines import Line, blocks, group
from . import FINDINGS, OK
from .output import RefusedError, say
from .parser import did_you_mean

# Seconds. Shorter work needs no progress line; it is redrawn at intervals.
_PATIENCE = 1.0
_REDRAW = 0.1
# Older logs affect neither today nor the current block, in any time zone.
_RECENT = 2 * 86400

_LogFiles: TypeAlias = tuple[Mapping[str, str], Mapping[str, Identity]]
"""Each file's machine, and the accessible files' identities."""


_waiting: list[Callable[[], None]] = []


class _LateCache(Cache):
    """A cache that is written after the output, so that a first report is there as early as without a cache."""

    def put(self, scans: Mapping[str, tuple[Identity, FileScan, bytes]]) -> None:
        """Store scans by path, as `Cache.put` does, but later."""
        _waiting.append(partial(super().put, scans))

    def store(self, name: str, value: Packed) -> None:
        """Store a value, as `Cache.store` does, but later, and without an error if the folder cannot be written."""
        _waiting.append(partial(super().store, name, value))


def write_late() -> None:
    """Write the entries of all late caches."""
    while _waiting:
        # After a failed write the logs are read again next time.
        with suppress(OSError):
            _waiting.pop(0)()


class Overview(NamedTuple):
    """Facts to mention beside a report."""

    files: int
    size: int
    lost: int
    """Number of lines that could not be read."""
    odd: int
    """Number of lines that were read despite a defect."""
    unfinished: int
    """Number of files whose last line is still being written."""
    unpriced: dict[str, int]
    """Tokens by model, for models without a price."""
    example: str
    """The first problem: file and reason."""


def chosen_zone(options: Namespace) -> tzinfo | None:
    """Return the time zone for days, `None` for the local zone; an unknown name raises `FilterError`."""
    if not options.tz:
        return None
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    try:
        return ZoneInfo(options.tz)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = did_you_mean(options.tz, available_timezones())
        raise FilterError(
            f"{options.tz!r} is not a time zone; write a name such as Europe/Berlin or UTC{hint}"
        ) from None


def chosen_prices(options: Namespace) -> Prices:
    """Return the price list."""
    return Prices.from_file(options.prices, replaces=options.only_prices) if options.prices else Prices()


def chosen_filter(options: Namespace) -> Filter:
    """Return the filter in the options; invalid options raise `FilterError`."""
    zone = chosen_zone(options)
    since = moment(options.since, zone) if options.since else None
    if options.last:
        if options.since:
            raise FilterError("--last and --since exclude each other; use one of them")
        since = last_days(options.last, zone, datetime.now().astimezone())
    until = moment(options.until, zone, end=True) if options.until else None
    if since is not None and until is not None and since >= until:
        raise FilterError("the end is not after the start; change --since, --last or --until")
    return Filter(
        since, until, options.project, options.model, options.session, options.branch, options.host,
        options.entrypoint, options.cli_version,
    )  # fmt: skip


def load_logs(options: Namespace, *, strict: bool = False, log_files: _LogFiles | None = None) -> Logs:
    """Read the logs that the options name; `log_files` has them if they are known."""
    if options.dask:
        from ..cluster import connect, read_logs_on

        for option, value in (("--from", options.hosts), ("--strict", options.strict)):
            if value:
                raise RefusedError(f"{option} is for files of this machine, and --dask reads elsewhere")
        with connect(options.dask) as client:
            return read_logs_on(client, options.sources or default_folders())
    cache = None if strict or options.no_cache else _LateCache()
    files, identities = log_files or _find_files(options)
    with with_progress() as progress:
        return read_log_files(
            files, cache=cache, processes=options.jobs or os.cpu_count() or 1, strict=strict or options.strict,
            progress=progress, identities=identities,
        )  # fmt: skip


@contextmanager
def with_progress() -> Generator[Progress | None]:
    """Show the progress of long work if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    start = drawn_at = time.monotonic()

    def show(finished: int, total: int) -> None:
        nonlocal drawn_at
        current_time = time.monotonic()
        if current_time - start >= _PATIENCE and current_time - drawn_at >= _REDRAW:
            drawn_at = current_time
            share = finished / total if total else 1.0
            sys.stderr.write(f"\rreading {share:4.0%} of {total / 1e6:,.0f} MB ")
            sys.stderr.flush()

    try:
        yield show
    finally:
        if drawn_at > start:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def load_rows(options: Namespace) -> tuple[list[Row], Logs]:
    """Return the priced rows that pass the filter, and their logs."""
    logs = load_logs(options)
    rows = logs.priced(chosen_prices(options), options.cost)
    return _select(chosen_filter(options), rows, lambda row: row.time), logs


def load_buckets(options: Namespace) -> tuple[list[Bucket], Overview, list[Bucket]]:
    """Return the buckets that pass the filter, facts, and all buckets, from the cache if no log has changed."""
    chosen = chosen_filter(options)
    if not chosen.by_quarters:
        rows, logs = load_rows(options)
        return fill_buckets(rows), overview(logs, rows), fill_buckets(logs.rows, [0.0] * len(logs.rows))
    log_files = None if options.no_cache or options.strict or options.dask else _find_files(options)
    facts = log_files and _facts(log_files)
    name = repr(("buckets", options.sources, options.hosts, chosen_prices(options).identity, options.cost))
    entry = Cache().load(name) if facts else None
    if entry and entry[0] == facts:
        buckets, summary = [Bucket(*values) for values in entry[1]], Overview(*entry[2])
    else:
        logs = load_logs(options, log_files=log_files)
        costs = logs.costs(chosen_prices(options), options.cost)
        buckets, summary = fill_buckets(logs.rows, costs), overview(logs, logs.rows, costs)
        # A file that could not be opened may be readable the next time, without any other change.
        if facts and not summary.unfinished and all(problem.offset >= 0 for problem in logs.problems):
            _LateCache().store(name, (facts, list(map(tuple, buckets)), tuple(summary)))
    selected = _select(chosen, buckets, lambda bucket: bucket.first if bucket.quarter is not None else None)
    return selected, summary, buckets


def _select(chosen: Filter, rows: Sequence[FilteredT], time: Callable[[FilteredT], float | None]) -> list[FilteredT]:
    """Return the rows that pass; if none does, tell which part of a name no row has."""
    selected = chosen.select(rows, time)
    if rows and not selected:
        for name, part, matches in chosen.unmatched(rows):
            say(f"note: no request has the {name} {part!r}{did_you_mean(part, matches)}")
    return selected


def recent_scans(sources: Sequence[str], cache: Cache) -> list[FileScan]:
    """Return the scans of logs that changed in the last two days."""
    recent: list[str] = []
    for path in find_logs(sources):
        with suppress(OSError):  # deleted meanwhile
            if os.path.getmtime(path) >= time.time() - _RECENT:
                recent.append(path)
    return read_files(recent, cache=cache)


def current_lines(buckets: list[Bucket], zone: tzinfo | None, current_time: float) -> tuple[Line, Line | None]:
    """Return today's line, and the active block line, if there is a block."""
    today = datetime.fromtimestamp(current_time, zone).date().isoformat()
    day = next((line for line in group(buckets, "day", zone) if line.key == today), Line(today))
    return day, next(
        (line for line in blocks(buckets, zone, current_time=current_time) if line.about["kind"] == "active"), None
    )


def buckets_of_day(buckets: Iterable[Bucket], zone: tzinfo | None, current_time: float) -> list[Bucket]:
    """Return today's buckets."""
    start = datetime.fromtimestamp(current_time, zone).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    return [bucket for bucket in buckets if bucket.quarter is not None and bucket.first >= start]


def load_titles(options: Namespace) -> dict[str, str]:
    """Return the session titles in the logs that the options name."""
    if options.dask:
        from ..cluster import connect, read_titles_on

        with connect(options.dask) as client:
            return read_titles_on(client, options.sources or default_folders())
    from ..log_files.titles import read_titles  # slow to import, and few commands show titles

    cache = None if options.no_cache else Cache()
    return read_titles(find_logs(options.sources), cache, repr(("titles", options.sources)))


def _find_files(options: Namespace) -> _LogFiles:
    files = hosts_of(options.sources, options.hosts)
    for place in missing_places() if not options.sources else ():
        say(f"note: CLAUDE_CONFIG_DIR names a folder that is not there: {place}")
    return files, identities_of(files)


def _facts(log_files: _LogFiles) -> bytes | None:
    """Return bytes that change with any log's content; `None` if unknown."""
    files, identities = log_files
    if len(identities) < len(files):  # the standard input, or a file that was just deleted
        return None
    # Version 2 has no references between equal objects, so that equal facts are equal bytes.
    return marshal.dumps([(path, *identity) for path, identity in identities.items()], 2)


def overview(logs: Logs, rows: Sequence[Row], costs: Iterable[float | None] | None = None) -> Overview:
    """Return the facts about logs, and about a report's rows. Without costs, the rows must be priced."""
    unpriced: dict[str, int] = {}
    for row, cost in zip(rows, (row.cost for row in rows) if costs is None else costs, strict=True):
        if cost is None:
            unpriced[row.model] = unpriced.get(row.model, 0) + row.tokens
    lost_lines = logs.lost
    example = f"{lost_lines[0].path}: {lost_lines[0].reason}" if lost_lines else ""
    odd = len(logs.problems) - len(lost_lines)
    return Overview(len(logs.files), logs.size, len(lost_lines), odd, len(logs.unfinished), unpriced, example)


def mention(summary: Overview) -> int:
    """Report missing or uncertain parts on stderr; return the exit code."""
    if summary.lost:
        first_example = f"the first: {summary.example}"
        say(f"note: lines that could not be read: {summary.lost:,}; {first_example}; cc-convert doctor lists them")
    elif summary.odd:
        say(f"note: lines that are damaged but were read: {summary.odd:,}; cc-convert doctor lists them")
    for model, tokens in sorted(summary.unpriced.items()):
        hint = _similar_price(model)
        add = f"add one with --prices FILE{hint}"
        say(f"note: no price for {model[:80]!r}: {tokens:,} tokens are not in the cost; {add}")
    return FINDINGS if summary.lost else OK


def _similar_price(model: str) -> str:
    from difflib import get_close_matches  # slow to import

    matches = get_close_matches(canonical_model(model), Prices().models, 1)
    return f"; the most similar model with a price is {matches[0]}" if matches else ""
