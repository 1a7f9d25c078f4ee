"""What was spent according to the CLI's own totals and stands in no request: rows that make the sums whole.

A transcript notes its session's totals at each end of a process; a compaction, for one, stands nowhere else. A result
of stream-json tells what its turn took, while the requests before it tell only how they began. What a total has more
than the requests it covers becomes a row of its own, so the rows always add up to the total.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from .model_names import canonical_model
from .rows import NO_COUNTS, Counts, FileScan, Kind, Ledger, Row, add_counts, counts_of, subtract_counts

__all__ = ["SessionTotal", "Totals", "places_of", "remainders", "session_totals"]

Totals: TypeAlias = dict[str, tuple[Counts, float]]
"""Counts and US dollars, by model."""
SessionTotal: TypeAlias = tuple[Totals, Totals]
"""What a session's last total says, and what of it a fork inherited."""
_States: TypeAlias = dict[str, list[tuple[Ledger, FileScan]]]

_NOTHING: tuple[Counts, float] = (NO_COUNTS, 0.0)


def remainders(scans: Iterable[FileScan], rows: dict[str, Row]) -> list[Row]:
    """Rows for what is in the totals and in no row; partial rows of stream-json get their final counts in place.

    Args:
        scans: What each log gave.
        rows: The rows of all of them, each request once. Some are replaced.

    Returns:
        The rows that are missing.
    """
    scans = list(scans)
    states = _states(scans)
    missing: list[Row] = []
    places = places_of(scans)
    for session, found in states.items():
        missing += _of_states(session, found, states, places[session], rows)
    results: dict[str, list[Ledger]] = defaultdict(list)
    seen: set[str] = set()
    for scan in scans:
        for ledger in scan.ledgers:
            if ledger.kind != "state" and ledger.session not in states and ledger.key not in seen:
                seen.add(ledger.key)
                results[ledger.session].append(ledger)
    for ledgers in results.values():
        missing += _of_results(ledgers, rows)
    return missing


def session_totals(scans: Iterable[FileScan]) -> dict[str, SessionTotal]:
    """The CLI's own last total of each session that has one, and what of it was inherited."""
    scans = list(scans)
    states = _states(scans)
    totals: dict[str, SessionTotal] = {}
    for session, found in states.items():
        last, scan = found[-1]
        totals[session] = (last.totals, _inherited(session, scan, states))
    return totals | _result_totals(scans, set(states))


def _result_totals(scans: list[FileScan], known: set[str]) -> dict[str, SessionTotal]:
    """Without a transcript, the results of a session are all there is: exact differences, or the largest sum."""
    deltas: dict[str, dict[str, Totals]] = defaultdict(dict)
    sums: dict[str, Totals] = {}
    for scan in scans:
        for ledger in scan.ledgers:
            if ledger.session in known:
                continue
            if ledger.kind == "delta":
                deltas[ledger.session][ledger.key] = ledger.totals
            elif ledger.kind == "sum" and _size(ledger.totals) >= _size(sums.get(ledger.session, {})):
                sums[ledger.session] = ledger.totals
    added: dict[str, SessionTotal] = {}
    for session, turns in deltas.items():
        total: Totals = {}
        for turn in turns.values():
            total = _plus(total, turn)
        added[session] = (total, {})
    for session, total in sums.items():
        added.setdefault(session, (total, {}))
    return added


# --- transcripts


def _states(scans: list[FileScan]) -> _States:
    """The totals of each session in the order in which they grew."""
    states: _States = defaultdict(list)
    seen: set[str] = set()
    for scan in scans:
        for ledger in scan.ledgers:
            if ledger.kind == "state" and ledger.key not in seen:
                seen.add(ledger.key)
                states[ledger.session].append((ledger, scan))
    for found in states.values():
        found.sort(key=lambda one: _size(one[0].totals))
    return states


def _of_states(
    session: str,
    found: list[tuple[Ledger, FileScan]],
    states: _States,
    places: list[FileScan],
    rows: Mapping[str, Row],
) -> list[Row]:
    scan = found[-1][1]
    inherited = _inherited(session, scan, states)
    elsewhere = _rows_elsewhere(session, scan, places, rows)
    missing: list[dict[str, Counts]] = []
    for ledger, _ in found:
        covered = dict(ledger.counted)
        for row in elsewhere:
            if ledger.until is None or row.time is None or row.time < ledger.until:
                _count(covered, row)
        missing.append(
            {
                model: subtract_counts(
                    counts, add_counts(covered.get(model, NO_COUNTS), inherited.get(model, _NOTHING)[0])
                )
                for model, (counts, _) in ledger.totals.items()
            }
        )
    # A request on the wrong side of an earlier total would be missing there and not later; what counts is the last.
    for earlier, later in zip(reversed(missing[:-1]), reversed(missing[1:]), strict=True):
        for model, counts in earlier.items():
            earlier[model] = _least(counts, later.get(model, NO_COUNTS))
    parent = _parent(scan)
    made: list[Row] = []
    before: dict[str, Counts] = {}
    for (ledger, _), now in zip(found, missing, strict=True):
        for model, counts in now.items():
            more = subtract_counts(counts, before.get(model, NO_COUNTS))
            if any(more):
                made.append(_row(ledger, model, more, "unlogged", parent, ledger.project or scan.project))
        before = now
    return made


def places_of(scans: list[FileScan]) -> dict[str, list[FileScan]]:
    """The scans in which each session made requests."""
    places: dict[str, list[FileScan]] = defaultdict(list)
    for scan in scans:
        for session in {row.session for row in scan.rows}:
            places[session].append(scan)
    return places


def _rows_elsewhere(session: str, home: FileScan, places: list[FileScan], rows: Mapping[str, Row]) -> list[Row]:
    """The session's requests that its main file does not have: those of sub-agents."""
    own = {row.key for row in home.rows}
    keys = {row.key for scan in places if scan is not home for row in scan.rows if row.session == session}
    return [rows[key] for key in sorted(keys - own)]


def _parent(scan: FileScan) -> str:
    return next(reversed(scan.origins.values()), "")


def _inherited(session: str, scan: FileScan, states: _States) -> Totals:
    """What a fork's total has of its parent: the parent's total then, or else the requests that were copied."""
    if not scan.origins:
        return {}
    own_times = [row.time for row in scan.rows if row.session == session and row.time is not None]
    forked = min(own_times, default=float("inf"))
    before = [one for one, _ in states.get(_parent(scan), ()) if one.time is None or one.time <= forked]
    if before:
        return before[-1].totals
    copied: Totals = {}
    for row in scan.rows:
        if row.key in scan.origins:
            model = canonical_model(row.model)
            copied[model] = (add_counts(copied.get(model, _NOTHING)[0], counts_of(row)), 0.0)
    return copied


# --- results


def _of_results(ledgers: list[Ledger], rows: dict[str, Row]) -> list[Row]:
    exact = [ledger for ledger in ledgers if ledger.kind == "delta"]
    sums = sorted((ledger for ledger in ledgers if ledger.kind == "sum"), key=lambda one: _size(one.totals))
    missing: list[Row] = []
    counted: Totals = {}
    for ledger in [*exact, *sums]:
        spent = _by_model(ledger, rows)
        for model, (stated, cost) in ledger.totals.items():
            told = spent.get(model, NO_COUNTS)
            before, before_cost = counted.get(model, _NOTHING) if ledger.kind == "sum" else _NOTHING
            more = subtract_counts(stated, add_counts(told, before))
            known = counted.get(model, _NOTHING)
            counted[model] = (add_counts(known[0], add_counts(told, more)), max(known[1], cost))
            if any(more) and not _completed(ledger, model, more, rows):
                kind: Kind = "turn" if ledger.turns and not ledger.keys else "unlogged"
                row = _row(ledger, model, more, kind, "", ledger.project)
                # If no request is known beside it, all of the cost is its own.
                missing.append(row if any(told) else row._replace(logged_cost=max(0.0, cost - before_cost)))
    return missing


def _by_model(ledger: Ledger, rows: Mapping[str, Row]) -> dict[str, Counts]:
    spent: dict[str, Counts] = {}
    for key in ledger.keys:
        row = rows.get(key)
        if row is not None and row.session == ledger.session:
            _count(spent, row)
    return spent


def _completed(ledger: Ledger, model: str, more: Counts, rows: dict[str, Row]) -> bool:
    """Whether all of it belongs to the one request of the turn whose counts are not final; if so, it gets them."""
    partial = [row for key in ledger.keys if (row := rows.get(key)) and not row.final]
    partial = [row for row in partial if canonical_model(row.model) == model]
    if len(partial) != 1:
        return False
    row = partial[0]
    numbers = add_counts(counts_of(row), more)
    rows[row.key] = row._replace(
        input=numbers[0], output=numbers[1], cache_read=numbers[2], cache_write_5m=numbers[3],
        cache_write_1h=numbers[4], thinking=numbers[5], web_searches=numbers[6], final=True,
    )  # fmt: skip
    return True


# --- arithmetic


def _count(sums: dict[str, Counts], row: Row) -> None:
    model = canonical_model(row.model)
    sums[model] = add_counts(sums.get(model, NO_COUNTS), counts_of(row))


def _row(ledger: Ledger, model: str, counts: Counts, kind: Kind, parent: str, project: str) -> Row:
    key = f"{kind}:{ledger.key}:{model}"
    tier, geo, speed = ledger.traits
    return Row(
        key, kind, ledger.time, ledger.session, parent, project, "", "", model, *counts, tier, geo, speed,
        tools=(), steps=(), logged_cost=None, final=True, message_id="", request_id="", uuid="",
    )  # fmt: skip


def _size(totals: Totals) -> int:
    return sum(sum(counts) for counts, _ in totals.values())


def _plus(first: Totals, second: Totals) -> Totals:
    total = dict(first)
    for model, (counts, cost) in second.items():
        known, spent = total.get(model, _NOTHING)
        total[model] = (add_counts(known, counts), spent + cost)
    return total


def _least(first: Counts, second: Counts) -> Counts:
    a, b, c, d, e, f, g = map(min, first, second)
    return (a, b, c, d, e, f, g)
