"""What reading a log gives: rows, the totals that the CLI itself noted, and what could not be read.

Plain tuples with names, so that hundreds of thousands of them are quick to make, to send between processes and to
write to a cache. This module knows neither files nor formats.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, cast

__all__ = [
    "LABELS",
    "NO_COUNTS",
    "Counts",
    "FileScan",
    "Kind",
    "Ledger",
    "Problem",
    "Row",
    "add_counts",
    "counts_of",
    "make_row",
    "subtract_counts",
    "with_all_writes",
]

Kind: TypeAlias = Literal["request", "turn", "unlogged", "error"]
"""What a row stands for.

`request` is one request to the API. `turn` is a whole turn whose requests the log does not tell apart. `unlogged` was
spent according to the CLI's totals and stands in no request: a compaction, for one. `error` is a request that failed;
it costs nothing.
"""


class Row(NamedTuple):
    """One request to the API, or what takes its place."""

    key: str
    """What makes the request the same wherever it is told: the message's id, else the request's, else the record's."""
    kind: Kind
    """What the row stands for."""
    time: float | None
    """When it was answered, in seconds since 1970; `None` where the log does not say."""
    session: str
    """The session that made the request. A fork repeats its parent's requests; they stay the parent's."""
    parent: str
    """The session that a fork came from; empty for a session of its own."""
    project: str
    """The folder that the session worked in."""
    agent: str
    """The sub-agent's id; empty for the main thread."""
    agent_type: str
    """The kind of sub-agent, such as `general-purpose`."""
    model: str
    """The model that answered; empty for an error message of the CLI's own, which no model wrote."""
    input: int
    """Input tokens that neither came from the cache nor went into it."""
    output: int
    """Output tokens, thinking included."""
    cache_read: int
    """Input tokens read from the cache."""
    cache_write_5m: int
    """Input tokens written to the cache for five minutes."""
    cache_write_1h: int
    """Input tokens written to the cache for an hour."""
    thinking: int
    """Tokens of thinking, already counted in the output."""
    web_searches: int
    """Web searches on the API's side."""
    tier: str
    """The service tier."""
    geo: str
    """Where inference ran."""
    speed: str
    """`standard` or `fast`."""
    tools: tuple[str, ...]
    """The tools that the answer called, in order."""
    steps: tuple[tuple[int, int, int, int, int], ...]
    """Where the API sampled several times for one request: input, output, cache read, 5m and 1h write of each time."""
    logged_cost: float | None
    """The cost in US dollars that the log states for this request, if it states one."""
    final: bool
    """Whether the counts are final. Stream-json repeats those of the start with each block."""
    message_id: str
    """The API's id of the answer."""
    request_id: str
    """The API's id of the request."""
    uuid: str
    """The CLI's id of the record."""
    branch: str = ""
    """The git branch of the working folder; empty where the log does not name one."""
    host: str = ""
    """The machine that the log comes from, as its reader or an archive names it."""
    entrypoint: str = ""
    """How Claude Code was started, such as `cli` or `sdk-py`."""
    version: str = ""
    """The version of Claude Code that wrote the record."""
    cost: float | None = None
    """The cost in US dollars; `None` before prices were applied, and for a model without a price."""

    @property
    def tokens(self) -> int:
        """All tokens, of every kind."""
        return self.input + self.output + self.cache_read + self.cache_write_5m + self.cache_write_1h


LABELS = ("branch", "host", "entrypoint", "version")
"""The fields of a row that tell where its session ran. They stand side by side."""

Counts: TypeAlias = tuple[int, int, int, int, int, int, int]
"""Input, output, cache read, 5m write, 1h write, thinking, web searches."""

NO_COUNTS: Counts = (0, 0, 0, 0, 0, 0, 0)


# Quicker than `Row(…)` by half, where most of the time goes.
make_row = cast("Callable[[Iterable[Any]], Row]", partial(tuple[Any, ...].__new__, Row))
"""Makes a row of its fields in order."""


def counts_of(row: Row) -> Counts:
    """The counts of a row."""
    return row[9:16]


def add_counts(first: Counts, second: Counts) -> Counts:
    """The sum, count by count."""
    a, b, c, d, e, f, g = first
    h, i, j, k, m, n, o = second
    return (a + h, b + i, c + j, d + k, e + m, f + n, g + o)


def subtract_counts(first: Counts, second: Counts) -> Counts:
    """What the first has more than the second, count by count; nothing below zero."""
    a, b, c, d, e, f, g = (max(0, one - other) for one, other in zip(first, second, strict=True))
    return (a, b, c, d, e, f, g)


def with_all_writes(counts: Counts) -> Counts:
    """The counts with all cache writes as those for five minutes, to compare with a total that does not split them."""
    a, b, c, d, e, f, g = counts
    return (a, b, c, d + e, 0, f, g)


class Ledger(NamedTuple):
    """Totals that the CLI noted itself: in a transcript's `cost-state`, or in a result message."""

    kind: Literal["state", "delta", "sum"]
    """`state` adds up over a session, its resumes and what a fork inherited, and stands in a transcript; `delta` is a
    turn's own; `sum` adds up like `state`, but came with a result."""
    key: str
    """What makes it the same wherever it is told."""
    session: str
    """The session."""
    project: str
    """The folder that the session worked in."""
    time: float | None
    """When it was noted, or a little before."""
    until: float | None
    """The time of the next request of the same file; what the ledger covers is older. `None` if none came."""
    totals: dict[str, tuple[Counts, float]]
    """Counts and US dollars, by model."""
    place: int
    """How many requests and compactions stand before it in the same file."""
    keys: tuple[str, ...]
    """For a result: the keys of the requests since the result before it."""
    turns: int
    """For a result: rounds between model and tools."""
    traits: tuple[str, str, str]
    """Tier, geo and speed of the request before it."""
    splits: bool = True
    """Whether the totals tell cache writes for an hour from those for five minutes; else all stand as the latter."""
    start: float | None = None
    """For a `state`: when its lineage began, in seconds since 1970. A fork that takes a total over keeps it."""
    duration: float | None = None
    """For a `state`: for how many seconds processes ran in its lineage."""
    written: float | None = None
    """The latest time in the file before it; it was written then, or later."""


class Problem(NamedTuple):
    """A line, or a file, that could not be read as it should be."""

    path: str
    """The file."""
    offset: int
    """Where the line starts, in bytes of the unpacked content; -1 for the file as a whole."""
    reason: str
    """What is wrong."""
    lost: bool
    """Whether what it said could not be read at all; else only that something in it is odd."""


class FileScan(NamedTuple):
    """What one file, or one stream, gave."""

    path: str
    rows: list[Row]
    """One for each request, in order."""
    ledgers: list[Ledger]
    problems: list[Problem]
    size: int
    """Bytes read, unpacked."""
    offset: int
    """Where to go on: after the last complete line."""
    unfinished: bool
    """Whether a last line was cut off, as it is while someone is still writing it."""
    open_keys: tuple[str, ...]
    """The keys of requests after the last result."""
    project: str
    """The last folder that was named."""
    origins: dict[str, str]
    """For a fork: the session that made the request, where it was another, by key."""
    compactions: dict[str, int]
    """The ids of compactions, with how many requests and compactions stand before each."""
    began: str = ""
    """The first time in the file, as it stands there."""
    latest: str = ""
    """The latest time in the file, as it stands there."""
