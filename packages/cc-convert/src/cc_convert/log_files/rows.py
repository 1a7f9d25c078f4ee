"""Result types for log readers: rows, totals that the CLI itself noted, and problems.

Named tuples, so that hundreds of thousands are quick to create, to send between processes and to
write to a cache. This module knows neither files nor formats.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from .amounts import Amounts, Counts

Kind: TypeAlias = Literal["request", "turn", "unlogged", "error", "declined", "advice"]
"""Meaning of a row.

`request` is one request to the API. `turn` is a whole turn whose requests the log does not separate. `unlogged` is in
the CLI totals and in no request, such as a compaction. `error` is a request that failed; it costs nothing.
`declined` is the part that a model wrote before it declined and another model finished the request, at the first
model price, or a compaction by the API within a request; it is in none of the CLI totals. `advice` is the part that
an advisor model wrote, at that model's price; it is in the CLI totals.
"""
DECLINED, ADVICE = ":declined:", ":advice:"
"""Texts in the keys of declined parts and of advice, between the request key and the part number."""


Steps: TypeAlias = tuple[tuple[int, int, int, int, int], ...]
"""Input, output, cache read, 5m write and 1h write, by sampling."""


class Row(NamedTuple):
    """A request to the API, or a substitute, see `Kind`."""

    key: str
    """The request identity in all logs: the message id, else the request's, else the record's."""
    kind: Kind
    """The row's meaning."""
    time: float | None
    """Time when the answer came, in seconds since 1970; `None` if the log has none."""
    session: str
    """The session that made the request. A fork repeats its parent's requests; they stay the parent's."""
    parent: str
    """The session that a fork came from; empty for other sessions."""
    project: str
    """The session project: the folder of its first request, in one form. Each work tree is a project of its own."""
    agent: str
    """The sub-agent id; empty for the main thread."""
    agent_type: str
    """The kind of sub-agent, such as `general-purpose`, or `workflow` and the workflow name."""
    model: str
    """The model that answered; empty for an error message by the CLI itself, which no model wrote."""
    input: int
    """This and the next six counts are those of `Amounts`."""
    output: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    thinking: int
    web_searches: int
    tier: str
    """The service tier."""
    geo: str
    """Place where the model ran."""
    speed: str
    """`standard` or `fast`."""
    tools: tuple[str, ...]
    """The tools that the answer called, in order."""
    steps: Steps
    """Counts by sampling, if the API ran several for the request."""
    logged_cost: float | None
    """The cost in US dollars that the log states for this request, if any."""
    final: bool
    """True if the counts are final. Stream-json repeats the first counts with each block."""
    message_id: str
    """The API id for the answer."""
    request_id: str
    """The API id for the request."""
    uuid: str
    """The CLI id for the record."""
    branch: str = ""
    """The working folder git branch; empty if the log names none."""
    host: str = ""
    """The log's machine, as named by a reader or an archive."""
    entrypoint: str = ""
    """Start mode, such as `cli` or `sdk-py`."""
    version: str = ""
    """Version of the Claude Code that wrote the record."""
    requested: str = ""
    """The requested model, if the answer names another model that did not finish the request for it, as behind
    gateways: the CLI totals count the request under this name."""
    folder: str = ""
    """The working folder at the request, which `cd` changes within a session."""
    cost: float | None = None
    """The cost in US dollars; `None` before prices were applied, and for a model without a price."""

    @property
    def tokens(self) -> int:
        """Return all tokens."""
        return self.input + self.output + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def counts(self) -> Counts:
        """Return the counts in `amounts`."""
        return self[9:16]  # from `input` to `web_searches`

    @property
    def amounts(self) -> Amounts:
        """Return counts and cost; without a price, it is 0."""
        return Amounts(*self.counts, self.cost or 0.0)

    def with_final(self, counts: Counts) -> "Row":
        """Return the row with these counts as the final ones."""
        return make_row((*self[:9], *counts, *self[16:]))._replace(final=True)


LABELS = ("branch", "host", "entrypoint", "version")
"""The row fields about the place of its session. They are adjacent."""

# Faster than `Row(…)` by half, in the most expensive step.
make_row = cast("Callable[[Iterable[Any]], Row]", partial(tuple[Any, ...].__new__, Row))
"""Create a row from its fields in order."""


class Ledger(NamedTuple):
    """Totals that the CLI noted itself: in a transcript's `cost-state`, or in a result message."""

    kind: Literal["state", "delta", "sum"]
    """`state` adds up over a session, its resumes and a fork's inherited part, and is in a transcript; `delta` is for
    one turn; `sum` adds up like `state`, but came with a result."""
    key: str
    """The total identity in all logs."""
    session: str
    project: str
    """The session's working folder."""
    time: float | None
    """Time when it was noted, or a little before."""
    until: float | None
    """Time of the next request in the file; the ledger covers older ones. `None` if there is none."""
    totals: dict[str, Amounts]
    """Amounts by model."""
    place: int
    """Number of requests and compactions before it in the file."""
    keys: tuple[str, ...]
    """For a result: the keys of requests since the result before it."""
    turns: int
    """For a result: rounds between model and tools."""
    traits: tuple[str, str, str]
    """Tier, geo and speed in the request before it."""
    splits: bool = True
    """True if the totals separate one-hour cache writes from five-minute writes; else all count as the latter."""
    start: float | None = None
    """For a `state`: start of the lineage, in seconds since 1970. A fork that takes a total over keeps it."""
    duration: float | None = None
    """For a `state`: running time of the lineage's processes, in seconds."""
    written: float | None = None
    """The last time in the file before it; it was written at this time or later."""
    set_back: bool = False
    """True if times in the file fell since the total before it: by a clock that was set back, or by a fork's copies."""


class Problem(NamedTuple):
    """A line or a file with a defect."""

    path: str
    """The file."""
    offset: int
    """Start of the line, in unpacked bytes; -1 for the whole file."""
    reason: str
    """The defect in words."""
    lost: bool
    """True if content is lost; else the content is only odd in part."""


class FileScan(NamedTuple):
    """Result from scanning a file or stream."""

    path: str
    rows: list[Row]
    """A row for each request, in order."""
    ledgers: list[Ledger]
    problems: list[Problem]
    size: int
    """Bytes read, unpacked."""
    offset: int
    """Offset to continue from: after the last complete line."""
    unfinished: bool
    """True if the last line was incomplete, as while a program is still writing it."""
    open_keys: tuple[str, ...]
    """The keys of requests after the last result."""
    project: str
    """The last named folder."""
    origins: dict[str, str]
    """For a fork: the session that made a request, if it was another session, by key."""
    compactions: dict[str, int]
    """Compactions by id, with the number of requests and compactions before each."""
    began: str = ""
    """The first time in the file, in its original form."""
    last: str = ""
    """The last time in the file, in its original form."""
    limits: tuple[tuple[str, str], ...] = ()
    """A plan windows, in stream-json: a time in its original form, and `rate_limit_info` as JSON."""
    version: str = ""
    """The CLI version, if a stream names it at the start."""
    answering: tuple[tuple[str, str], ...] = ()
    """Requests whose event stream has begun: keys by thread."""
    tool_ids: tuple[str, ...] = ()
    """The last tool calls' ids, which the log may repeat."""
    set_back: bool = False
    """True if times fell since the last total."""
    is_sdk_fork: bool = False
    """True if the SDK's `fork_session()` wrote the last copies: it copies no total."""
    checksum: int = 0
    """Checksum of the file bytes before `offset`; 0 if none was made, as for a packed file."""


def empty_scan(path: str, *problems: Problem) -> FileScan:
    """Return a scan without rows."""
    return FileScan(path, [], [], [*problems], 0, 0, False, (), "", {}, {})


def unreadable(path: str, error: OSError) -> FileScan:
    """Return the scan for a file that cannot be read: it holds only the problem."""
    return empty_scan(path, Problem(path, -1, error.strerror or type(error).__name__, True))
