"""Totals in transcripts, and the requests that each of them covers.

A process of the CLI notes at its end the total of its session so far. It starts from the total in the session's
file, or in that of the session it forks; both keep the start of the lineage. So each total has a base, and the
difference to it is the spending of one process. Requests of a process that was killed, or still runs, are in no total.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

from ..model_names import canonical_model
from ..rows import NO_COUNTS, Counts, FileScan, Ledger, Row, add_counts, subtract_counts, with_all_writes

__all__ = ["NOTHING", "ProcessTotal", "Totals", "count_rows", "places_of", "process_totals", "size_of"]

Totals: TypeAlias = dict[str, tuple[Counts, float]]
"""Counts and US dollars, by model."""
NOTHING: tuple[Counts, float] = (NO_COUNTS, 0.0)
_Sums: TypeAlias = dict[str, tuple[int, ...]]
"""Input, output, cache read, cache write and web searches by model, as in all versions. No model has only zeros."""
# Number of possible bases: the total of the process before, or of processes that ran at the same time.
_MOST_BASES = 8
# Limit of steps in the search among requests of parallel processes. A thousand steps take a millisecond.
_MOST_STEPS = 20_000


class ProcessTotal(NamedTuple):
    """Spending of one process, according to the total at its end."""

    ledger: Ledger
    scan: FileScan
    spent: Totals
    covered: list[Row]
    """The requests in it."""
    unlogged: dict[str, Counts]
    """The part of it that is in no request, by model. No model has only zeros."""


class _File:
    def __init__(self, scan: FileScan) -> None:
        self.scan = scan

    @cached_property
    def positions(self) -> dict[str, int]:
        """Positions of requests and compactions. Most files need none, see `_of_one_process`."""
        positions = {**self.scan.compactions}
        taken, place = {*self.scan.compactions.values()}, 0
        for row in self.scan.rows:
            while place in taken:
                place += 1
            positions[row.key] = place
            place += 1
        return positions


class _State(NamedTuple):
    ledger: Ledger
    file: _File


_Lineages: TypeAlias = dict[float | str, list[_State]]
"""Totals by the start of their lineage, or by session if they name none."""


class _Base(NamedTuple):
    """The state from which a process began."""

    totals: Totals
    duration: float | None
    copied: tuple[Row, ...] = ()
    """Requests of a parent whose total is not available."""


def process_totals(scans: list[FileScan], rows: Mapping[str, Row]) -> dict[str, list[ProcessTotal]]:
    """Return the totals of each session that has some, process by process.

    Args:
        scans: The scan of each log, each request assigned to one session.
        rows: The rows of all of them, each request once.
    """
    states = _states(scans)
    lineages: _Lineages = defaultdict(list)
    for session, found in states.items():
        for state in found:
            lineages[session if state.ledger.start is None else state.ledger.start].append(state)
    made: dict[str, list[Row]] = {session: [] for session in states}
    for row in rows.values():
        if row.session in made and row.kind not in ("unlogged", "error"):
            made[row.session].append(row)
    return {session: _of_session(found, lineages, made[session]) for session, found in states.items()}


def places_of(scans: list[FileScan]) -> dict[str, list[FileScan]]:
    """Return the scans in which each session made requests."""
    places: dict[str, list[FileScan]] = defaultdict(list)
    for scan in scans:
        for session in {row.session for row in scan.rows}:
            places[session].append(scan)
    return places


def _states(scans: list[FileScan]) -> dict[str, list[_State]]:
    """Return the totals of each session, in the order of its file."""
    states: dict[str, list[_State]] = defaultdict(list)
    seen: set[str] = set()
    for scan in scans:
        file = _File(scan)
        for ledger in scan.ledgers:
            if ledger.kind == "state" and ledger.key not in seen:
                seen.add(ledger.key)
                states[ledger.session].append(_State(ledger, file))
    for found in states.values():
        # A copy of the file may be more complete.
        found.sort(key=lambda state: state.ledger.place)
    return states


# --- one session


def _of_session(states: list[_State], lineages: _Lineages, made: list[Row]) -> list[ProcessTotal]:
    if len(states) == 1 and (usual := _of_one_process(states[0], made)):
        return [usual]
    several = len({state.ledger.start for state in states}) > 1
    positions = states[-1].file.positions
    # By position, so that requests after a total need no check; those of sub-agents have no position.
    left = sorted(made, key=lambda row: positions.get(row.key, -1))
    found: list[ProcessTotal] = []
    known: dict[float | None, list[_Base]] = defaultdict(list)
    for state in states:
        stop = bisect_left(left, state.ledger.place, key=lambda row: positions.get(row.key, -1))
        pool = [row for row in left[:stop] if _may_cover(state, row)]
        earlier = known[state.ledger.start]
        bases = earlier[: -_MOST_BASES - 1 : -1] or [_inherited(state, _relatives(state, lineages), pool)]
        base, covered = _choose(state, bases, pool, shared=bool(earlier) or several)
        earlier.append(_Base(state.ledger.totals, state.ledger.duration))
        taken = {row.key for row in covered}
        left[:stop] = [row for row in left[:stop] if row.key not in taken]
        found.append(_process_total(state, base, covered))
    return found


def _of_one_process(state: _State, made: list[Row]) -> ProcessTotal | None:
    """Return the total of a session without copies if it is exactly that of all its requests, as it mostly is.

    The general way gives the same result, and takes five times as long.
    """
    ledger, scan = state.ledger, state.file.scan
    start = ledger.start
    if scan.origins or ledger.place < len(scan.rows) + len(scan.compactions):
        return None
    if start is not None and any(row.time is not None and row.time < start for row in made):
        return None
    if count_rows(made) != {model: counts for model, (counts, _) in ledger.totals.items()}:
        return None
    return ProcessTotal(ledger, scan, ledger.totals, made, {})


def _may_cover(state: _State, row: Row) -> bool:
    """Return whether a request existed when its session's total was noted, in the same lineage."""
    ledger, place = state.ledger, state.file.positions.get(row.key)
    if row.time is not None and ledger.start is not None and row.time < ledger.start:
        return False
    if place is not None:
        return place < ledger.place
    # Those of sub-agents are in files of their own.
    return ledger.until is None or row.time is None or row.time < ledger.until


def _choose(state: _State, bases: Sequence[_Base], pool: list[Row], *, shared: bool) -> tuple[_Base, list[Row]]:
    """Return the base of a process, and the requests that it made.

    Args:
        state: The total at its end.
        bases: Possible bases, the likeliest first.
        pool: The requests that it may have made.
        shared: Whether some of these may belong to other processes.
    """
    possible: list[tuple[_Base, _Sums, list[Row]]] = []
    total = _sums(state.ledger.totals)
    for base in bases:
        spent = _difference(total, _sums(base.totals))
        if spent is not None and (spent := _difference(spent, _sums_of(base.copied))) is not None:
            possible.append((base, spent, _within(state.ledger, base, pool)))
    for base, spent, window in possible:
        if _sums_of(window) == spent:
            return base, window
    if shared:
        for base, spent, window in possible:
            if (chosen := _adding_up(window, spent)) is not None:
                return base, chosen
    for base, spent, window in possible:
        if _difference(spent, _sums_of(window)) is not None:
            return base, window
    return (possible[0][0], possible[0][2]) if possible else (bases[0], pool)


def _within(ledger: Ledger, base: _Base, rows: list[Row]) -> list[Row]:
    """Return the rows since the start of the process; its running time is the growth of the lineage's duration."""
    if ledger.written is None or ledger.duration is None or base.duration is None:
        return rows
    started = ledger.written - (ledger.duration - base.duration)
    return [row for row in rows if row.time is None or row.time >= started]


def _adding_up(rows: list[Row], spent: _Sums) -> list[Row] | None:
    """Return rows that add up to the spending, if there are any; of several sets, the latest one."""
    sums = [count_rows([row]) for row in rows]
    # Largest sums that the rows up to each of them can explain.
    most: list[_Sums] = [{}]
    counted: dict[str, Counts] = {}
    for one in sums:
        for model, counts in one.items():
            counted[model] = add_counts(counted.get(model, NO_COUNTS), counts)
        most.append(_without_zeros(counted))
    # Each entry: position to continue from, rest to explain, chosen rows.
    waiting: list[tuple[int, _Sums, tuple[int, ...]]] = [(len(rows), spent, ())]
    for _ in range(_MOST_STEPS):
        if not waiting:
            return None
        at, left, chosen = waiting.pop()
        if not left:
            return [rows[one] for one in reversed(chosen)]
        if at > 0 and _difference(most[at], left) is not None:
            waiting.append((at - 1, left, chosen))
            if (rest := _difference(left, _without_zeros(sums[at - 1]))) is not None:
                waiting.append((at - 1, rest, (*chosen, at - 1)))
    return None


def _relatives(state: _State, lineages: _Lineages) -> list[_State]:
    """Return the totals that the first process of a session can have begun from."""
    if state.ledger.start is not None:
        return lineages[state.ledger.start]
    return [one for session in dict.fromkeys(state.file.scan.origins.values()) for one in lineages.get(session, ())]


def _inherited(state: _State, relatives: Iterable[_State], pool: list[Row]) -> _Base:
    """Return the base of a session's first process: nothing, or the total of the forked session."""
    ledger = state.ledger
    total = _sums(ledger.totals)
    others = [
        (one, spent)
        for one in relatives
        if one.ledger.session != ledger.session
        and (one.ledger.duration or 0) <= (ledger.duration or 0)
        and (spent := _difference(total, _sums(one.ledger.totals))) is not None
    ]
    others.sort(key=lambda one: size_of(one[0].ledger.totals), reverse=True)
    own = _sums_of(pool) if others else {}
    forked = [one for one in others if _was_copied(one[0], state)]
    for other, _ in [one for one in (*forked, *others) if own and one[1] == own] or forked:
        return _Base(other.ledger.totals, other.ledger.duration)
    scan = state.file.scan
    copied = tuple(row for row in scan.rows if row.key in scan.origins)
    # A lineage younger than the copied requests took over no total: the parent was killed, or still ran.
    younger = any(row.time is not None and ledger.start is not None and row.time < ledger.start for row in copied)
    return _Base({}, 0.0, () if younger else copied)


def _was_copied(state: _State, fork: _State) -> bool:
    """Return whether a fork has a copy of the last request or compaction before the total of another session."""
    positions, copies = state.file.positions, fork.file.positions
    last = max((place for key, place in positions.items() if key in copies), default=-1)
    return last >= 0 and not any(last < place < state.ledger.place for place in positions.values())


def _process_total(state: _State, base: _Base, covered: list[Row]) -> ProcessTotal:
    spent: Totals = {}
    unlogged: dict[str, Counts] = {}
    covered = [*covered, *base.copied]
    told = count_rows(covered)
    for model, (counts, cost) in state.ledger.totals.items():
        known, known_cost = base.totals.get(model, NOTHING)
        requests = told.get(model, NO_COUNTS)
        if not state.ledger.splits:
            counts, known, requests = map(with_all_writes, (counts, known, requests))
        spent[model] = (subtract_counts(counts, known), max(0.0, cost - known_cost))
        if any(left := subtract_counts(spent[model][0], requests)):
            unlogged[model] = left
    return ProcessTotal(state.ledger, state.file.scan, spent, covered, unlogged)


# --- arithmetic


def size_of(totals: Totals) -> int:
    """Return all tokens of all models."""
    return sum(sum(counts) for counts, _ in totals.values())


def count_rows(rows: Iterable[Row]) -> dict[str, Counts]:
    """Return the counts of rows, by model."""
    sums: dict[str, Counts] = {}
    for row in rows:
        model = canonical_model(row.model)
        known = sums.get(model)
        sums[model] = row[9:16] if known is None else add_counts(known, row[9:16])
    return sums


def _sums(totals: Totals) -> _Sums:
    return _without_zeros({model: counts for model, (counts, _) in totals.items()})


def _sums_of(rows: Iterable[Row]) -> _Sums:
    return _without_zeros(count_rows(rows))


def _without_zeros(counts: Mapping[str, Counts]) -> _Sums:
    sums = {
        model: (fresh, output, read, short + hour, searches)
        for model, (fresh, output, read, short, hour, _, searches) in counts.items()
    }
    return {model: numbers for model, numbers in sums.items() if any(numbers)}


def _difference(total: _Sums, part: _Sums) -> _Sums | None:
    """Return a total minus a part; `None` if any count of the part is larger."""
    if not part:
        return total
    if not part.keys() <= total.keys():
        return None
    left = dict(total)
    for model, counts in part.items():
        numbers = tuple(one - other for one, other in zip(total[model], counts, strict=True))
        if min(numbers) < 0:
            return None
        left[model] = numbers
        if not any(numbers):
            del left[model]
    return left
