"""Read Claude Code logs and compute their sums: the entry point for programs.

`read_logs` takes any output from Claude Code and the SDK and gives one `Row` for each request to the API, each request
once. Reading knows no prices; `Logs.priced` applies them.
"""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from .garbage import no_collections
from .log_files.amounts import NOTHING, Amounts
from .log_files.cache import Cache, Identity
from .log_files.collector import better
from .log_files.files import Progress, read_files
from .log_files.rows import LABELS, FileScan, Kind, Problem, Row, make_row
from .log_files.sources import LogsNotFoundError, hosts_of
from .prices import Prices
from .totals.lineage import assign_sessions, places_of
from .totals.remainders import SessionTotal, find_unlogged
from .totals.sums import billed_model

__all__ = [
    "Amounts", "Cache", "CostMode", "Kind", "Logs", "LogsNotFoundError", "Prices", "Problem", "Row", "merge",
    "read_log_files", "read_logs", "read_messages",
]  # fmt: skip

CostMode: TypeAlias = Literal["auto", "calculate", "logged"]
"""Source for a row cost.

`calculate`: its tokens and the price list. `auto`: the cost that the log states for the request, as old CLI versions
wrote it, else as `calculate`. `logged`: only the CLI figures; a session's total is spread over its rows.
"""


_HOST = Row._fields.index("host")


class Logs(NamedTuple):
    """Content of logs."""

    rows: list[Row]
    """Each request once, oldest first, and rows for usage that is in the CLI totals and in no request."""
    problems: list[Problem]
    """Lines and files with defects."""
    totals: dict[str, SessionTotal]
    """Spending by session according to the CLI, if it noted a total."""
    files: list[str]
    """The files that were read."""
    places: dict[str, list[str]]
    """Files with requests, by session."""
    unfinished: list[str]
    """Files whose last line is still being written."""
    size: int
    """Bytes in all, unpacked."""

    @property
    def lost(self) -> list[Problem]:
        """The problems that lost data."""
        return [problem for problem in self.problems if problem.lost]

    def priced(self, prices: Prices | None = None, mode: CostMode = "auto") -> list[Row]:
        """Return the rows with their cost; `None` stays without a price.

        Args:
            prices: The price list; the built-in list by default.
            mode: Source for the cost.
        """
        costs = self.costs(prices, mode)
        # The cost is the last field.
        return [make_row((*row[:-1], cost)) for row, cost in zip(self.rows, costs, strict=True)]

    def costs(self, prices: Prices | None = None, mode: CostMode = "auto") -> list[float | None]:
        """Return the rows' costs, in order, as in `priced`."""
        price = (prices or Prices()).cost
        if mode == "logged":
            return list(_logged_costs(self.rows, self.totals, prices or Prices()))
        if mode == "calculate":
            return [price(row) for row in self.rows]
        return [price(row) if row.logged_cost is None else row.logged_cost for row in self.rows]


def read_logs(
    *sources: str | os.PathLike[str],
    cache: Cache | None = None,
    processes: int = 1,
    strict: bool = False,
    progress: Progress | None = None,
    hosts: Mapping[str, str] | None = None,
) -> Logs:
    """Read logs in any format.

    Args:
        sources: Files, folders, patterns, or `-` for the standard input: stream-json, transcripts with their
            sub-agents' transcripts, output from `--output-format json`; packed with gzip or not. By default Claude
            Code transcripts on this machine.
        cache: Stores scans, so that the next call reads only new lines.
        processes: Largest number of processes.
        strict: Decode every line, also without usage, to find all defects in a log.
        progress: Callback with bytes done and bytes in all.
        hosts: The machine that a source was copied from, by the source. Without sources, it is this machine.

    Returns:
        The content. Content never raises: unreadable parts are listed in `Logs.problems`.

    Raises:
        LogsNotFoundError: A source does not exist.
    """
    return read_log_files(hosts_of(sources, hosts), cache=cache, processes=processes, strict=strict, progress=progress)


def read_log_files(
    files: Mapping[str, str],
    *,
    cache: Cache | None = None,
    processes: int = 1,
    strict: bool = False,
    progress: Progress | None = None,
    identities: Mapping[str, Identity] | None = None,
) -> Logs:
    """Read files, each with its machine, as `read_logs` does; `identities` has those from `identities_of`, if known."""
    with no_collections():
        scans = read_files(
            list(files), cache=cache, processes=processes, strict=strict, progress=progress, identities=identities
        )
        return merge(scans, files)


def read_messages(messages: Iterable[object]) -> Logs:
    """Read SDK messages, or dicts from stream-json, as `read_logs` reads files."""
    # Imported here: message shapes need pydantic's models, which are slow to import; reading files does not.
    from .log_files.messages import scan_messages

    return merge([scan_messages(messages)])


def merge(scans: Iterable[FileScan], hosts: Mapping[str, str] | None = None) -> Logs:
    """Merge scans of logs from any machine.

    Args:
        scans: A scan for each log.
        hosts: The machine that a log comes from, by path.
    """
    scans = assign_sessions(list(scans))
    rows: dict[str, Row] = {}
    for scan in scans:
        host = (hosts or {}).get(scan.path, "")
        # Archive rows may have a machine.
        scan_rows = {
            row.key: row if row.host or not host else make_row((*row[:_HOST], host, *row[_HOST + 1 :]))
            for row in scan.rows
        }
        for key in scan_rows.keys() & rows.keys():
            scan_rows[key] = better(rows[key], scan_rows[key])
        rows |= scan_rows
    # An archive may already contain them.
    missing_rows, totals = find_unlogged(scans, rows)
    if missing_rows := [row for row in missing_rows if row.key not in rows]:
        missing_rows = _copy_labels(missing_rows, rows)
    ordered = sorted([*rows.values(), *missing_rows], key=lambda row: (row.time is None, row.time or 0.0))
    return Logs(
        rows=_with_projects(ordered),
        problems=[problem for scan in scans for problem in scan.problems],
        totals=totals,
        files=[scan.path for scan in scans],
        places=places_of(scans),
        unfinished=[scan.path for scan in scans if scan.unfinished],
        size=sum(scan.size for scan in scans),
    )


def _with_projects(rows: list[Row]) -> list[Row]:
    """Give each session the folder of its first request as the project."""
    names: dict[str, str] = {}
    projects: dict[str, str] = {}
    for row in rows:
        if row.project and row.session not in projects:
            projects[row.session] = names.get(row.project) or names.setdefault(row.project, _one_form(row.project))
    return [
        row if (project := projects.get(row.session, row.project)) == row.project else row._replace(project=project)
        for row in rows
    ]


def _one_form(folder: str) -> str:
    """Return a folder name in one form: accents as one character, a Windows drive in upper case."""
    return unicodedata.normalize("NFC", folder[:1].upper() + folder[1:] if folder[1:2] == ":" else folder)


def _copy_labels(missing_rows: list[Row], rows: Mapping[str, Row]) -> list[Row]:
    """Copy the labels from each session's last request to its unlogged rows."""
    last_rows = {row.session: row for row in rows.values()}
    return [
        row._replace(**{name: getattr(last_row, name) for name in LABELS})
        if (last_row := last_rows.get(row.session))
        else row
        for row in missing_rows
    ]


def _logged_costs(rows: list[Row], totals: dict[str, SessionTotal], prices: Prices) -> Iterator[float | None]:
    """Yield logged costs: a session has only a total, which its rows share in proportion to calculated cost."""
    owners = {key: session for session, total in totals.items() for key in total.covered or ()}
    sessions = [_total_of(row, totals, owners) for row in rows]
    models = [billed_model(row) for row in rows]
    weights = [float(row.tokens) if (cost := prices.cost(row)) is None else cost for row in rows]
    sums: dict[tuple[str, str], float] = {}
    for session, model, weight in zip(sessions, models, weights, strict=True):
        sums[session, model] = sums.get((session, model), 0.0) + weight
    for row, session, model, weight in zip(rows, sessions, models, weights, strict=True):
        if row.logged_cost is not None or not session:
            yield 0.0 if row.kind == "error" else row.logged_cost
            continue
        share = weight / sums[session, model] if weight else 0.0
        yield totals[session].spent.get(model, NOTHING).cost * share


def _total_of(row: Row, totals: dict[str, SessionTotal], owners: dict[str, str]) -> str:
    """Return the session whose total includes a row; empty if there is none."""
    total = totals.get(row.session)
    if total and (total.covered is None or row.kind == "unlogged"):
        return row.session
    return owners.get(row.key, "")
