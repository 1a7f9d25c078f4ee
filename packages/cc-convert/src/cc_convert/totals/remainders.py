"""Rows for usage in the CLI totals that is in no request: they complete the sums.

A transcript notes the session totals whenever a process ends; a compaction, for example, is recorded nowhere else.
A result in stream-json has the turn usage; the requests before it have only their first counts. The
remainder of a total over its requests becomes a separate row, so the rows always add up to the total.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from ..log_files.amounts import NOTHING, Amounts
from ..log_files.rows import ADVICE, FileScan, Kind, Ledger, Row
from ..prices import Prices
from .fallbacks import bill_requests
from .session_totals import ProcessTotal, process_totals
from .sums import Totals, add_all, billed_model, count_rows, difference, find_run, size_of, sums, sums_of


class SessionTotal(NamedTuple):
    """A session's spending according to the CLI totals."""

    spent: Totals
    """Amounts by model, without the part that a fork took over from the parent."""
    covered: frozenset[str] | None
    """Keys of the requests; `None` means all in the session."""
    splits: bool
    """True if it separates one-hour cache writes from five-minute writes."""
    doubtful: int = 0
    """Tokens that may be counted twice: requests that the part in no request may contain, or a total that exceeds the
    session's last total."""


def find_unlogged(scans: list[FileScan], rows: dict[str, Row]) -> tuple[list[Row], dict[str, SessionTotal]]:
    """Return rows for usage that is in a total and in no row, and each session's total, if there is one.

    Each request has one session. Partial rows from stream-json get their final counts in place.
    """
    bill_requests(scans, rows)
    by_session = process_totals(scans, rows)
    all_processes = (process for processes in by_session.values() for process in processes)
    missing_rows = [row for process in all_processes if process.unlogged for row in _process_rows(process)]
    totals = {session: _session_total(processes) for session, processes in by_session.items()}
    results: dict[str, list[Ledger]] = defaultdict(list)
    keys: set[str] = set()
    for scan in scans:
        for ledger in scan.ledgers:
            if ledger.kind != "state" and ledger.session not in totals and ledger.key not in keys:
                keys.add(ledger.key)
                results[ledger.session].append(ledger)
    for ledgers in results.values():
        missing_rows += _result_rows(ledgers, rows)
    return missing_rows, totals | {session: _result_total(ledgers) for session, ledgers in results.items()}


# --- transcripts


def _process_rows(total: ProcessTotal) -> list[Row]:
    parent = next(reversed(total.scan.origins.values()), "")
    project = total.ledger.project or total.scan.project
    missing_rows: list[Row] = []
    for model, amounts in total.unlogged.items():
        row = _row(total.ledger, model, amounts, "unlogged", parent, project)
        missing_rows.append(_split(row, total.ledger, total.spent[model].cost, total.covered))
    return missing_rows


def _session_total(processes: list[ProcessTotal]) -> SessionTotal:
    spent = add_all(process.spent for process in processes)
    covered = frozenset([row.key for process in processes for row in process.covered])
    return SessionTotal(
        spent, covered, all(process.ledger.splits for process in processes), _doubtful_tokens(processes, spent)
    )


def _doubtful_tokens(processes: list[ProcessTotal], spent: Totals) -> int:
    """Return the tokens that may be counted twice. Requests that add up to their totals leave no doubt."""
    unlogged = [process for process in processes if process.unlogged]
    if not unlogged:
        return 0
    inherited = size_of(processes[0].ledger.totals) - size_of(processes[0].spent)
    largest = max(size_of(process.ledger.totals) for process in processes)
    doubtful = max(0, size_of(spent) - (largest - inherited))
    covered = {row.key for process in processes for row in process.covered}
    if any(_is_interleaved(process.scan) for process in unlogged):
        doubtful = max(doubtful, sum(size_of(process.unlogged) for process in unlogged))
    for process in unlogged:
        remainder = sums(process.unlogged)
        rows = [row for row in process.uncovered if row.key not in covered]
        if process.moved:
            fitting = [row for row in rows if difference(remainder, sums_of([row])) is not None]
            doubtful += sum(row.tokens for row in [*process.covered, *fitting])
        elif rows and difference(remainder, sums_of(rows)) is not None:
            doubtful += sum(row.tokens for row in rows)
        else:
            rows = [row for row in process.later if row.key not in covered]
            doubtful += sum(row.tokens for row in find_run(rows, remainder))
    return doubtful or sum(size_of(process.unlogged) for process in unlogged if _may_have_wrong_rows(process))


def _may_have_wrong_rows(process: ProcessTotal) -> bool:
    """Return true if a total has usage in no request, beside requests in no total, and no compaction explains it.

    Several sets of requests may add up to another process's total, and the wrong one may have been chosen.
    """
    models = {billed_model(row) for row in process.uncovered}
    return not process.scan.compactions and not models.isdisjoint(process.unlogged)


def _is_interleaved(scan: FileScan) -> bool:
    """Return true if sessions alternate in a file, as after a merge by line: places then do not tell who came first."""
    runs = [session for session, _ in groupby(row.session for row in scan.rows)]
    return len(runs) > len(set(runs))


# --- results


def _result_total(ledgers: list[Ledger]) -> SessionTotal:
    """Return a session's total without a transcript, from results: exact differences, or the largest sum."""
    deltas = [ledger.totals for ledger in ledgers if ledger.kind == "delta"]
    spent = add_all(deltas) if deltas else max((ledger.totals for ledger in ledgers), key=size_of)
    return SessionTotal(spent, None, all(ledger.splits for ledger in ledgers))


def _result_rows(ledgers: list[Ledger], rows: dict[str, Row]) -> list[Row]:
    deltas = [ledger for ledger in ledgers if ledger.kind == "delta"]
    grown = sorted((ledger for ledger in ledgers if ledger.kind == "sum"), key=lambda ledger: size_of(ledger.totals))
    missing_rows: list[Row] = []
    counted: Totals = {}
    advice: dict[str, list[str]] = defaultdict(list)
    for row in rows.values():
        if row.kind == "advice":
            advice[row.key.partition(ADVICE)[0]].append(row.key)
    for ledger in [*deltas, *grown]:
        keys = [key for request in ledger.keys for key in (request, *advice.get(request, ()))]
        requests = [row for key in keys if (row := rows.get(key)) and row.session == ledger.session]
        spent = count_rows(requests)
        for model, stated in ledger.totals.items():
            logged, done = spent.get(model, NOTHING), counted.get(model, NOTHING)
            earlier = done if ledger.kind == "sum" else NOTHING
            if not ledger.splits:
                stated, logged, earlier = stated.unsplit, logged.unsplit, earlier.unsplit
            more = (stated - logged - earlier).at_least_zero.without_cost
            counted[model] = (done + logged + more)._replace(cost=max(done.cost, stated.cost))
            cost = stated.cost - earlier.cost
            if any(more) and not _complete_partial_row(ledger, model, more, rows):
                kind: Kind = "turn" if ledger.turns and not ledger.keys else "unlogged"
                row = _row(ledger, model, more, kind, "", ledger.project)
                row = _split(row, ledger, cost, requests)
                # Without a known request beside it, the row has the whole cost.
                missing_rows.append(row if any(logged) else row._replace(logged_cost=max(0.0, cost)))
    return missing_rows


def _complete_partial_row(ledger: Ledger, model: str, more: Amounts, rows: dict[str, Row]) -> bool:
    """Return true if the turn has a single request with non-final counts, which then gets `more`."""
    partial = [row for key in ledger.keys if (row := rows.get(key)) and not row.final]
    partial = [row for row in partial if billed_model(row) == model]
    if len(partial) != 1:
        return False
    row = partial[0]
    rows[row.key] = row.with_final((row.amounts + more).counts)
    return True


# --- rows


def _split(row: Row, ledger: Ledger, cost: float, neighbours: Iterable[Row]) -> Row:
    """Split a row's cache writes if the total does not: one-hour writes cost more.

    The cost, in US dollars, includes the requests beside the row.
    """
    price = Prices().cost
    short_cost, hour = price(row), price(row._replace(cache_write_5m=0, cache_write_1h=row.cache_write_5m))
    if ledger.splits or short_cost is None or hour is None or hour <= short_cost:
        return row
    neighbour_cost = sum(price(neighbour) or 0.0 for neighbour in neighbours if billed_model(neighbour) == row.model)
    part = min(1.0, max(0.0, (cost - neighbour_cost - short_cost) / (hour - short_cost)))
    written = round(part * row.cache_write_5m)
    return row._replace(cache_write_5m=row.cache_write_5m - written, cache_write_1h=written)


def _row(ledger: Ledger, model: str, amounts: Amounts, kind: Kind, parent: str, project: str) -> Row:
    key = f"{kind}:{ledger.key}:{model}"
    tier, geo, speed = ledger.traits
    return Row(
        key, kind, ledger.time, ledger.session, parent, project, "", "", model, *amounts.counts, tier, geo, speed,
        tools=(), steps=(), logged_cost=None, final=True, message_id="", request_id="", uuid="",
    )  # fmt: skip
