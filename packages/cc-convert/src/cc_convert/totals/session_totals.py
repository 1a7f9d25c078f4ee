"""Totals in transcripts, and the requests that each total covers.

At the end, a CLI process notes the session total so far. It starts from the total in the session
file, or in the forked session file; both keep the lineage's start. So each total has a base, and the
difference is one process's spending. Requests by a process that was killed, or still runs, are in no total.

Sums come first, then places in the file, then times: an exact sum is not a coincidence, and the clock may have
been set back.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from ..log_files.amounts import NOTHING
from ..log_files.rows import FileScan, Ledger, Row
from .bases import Base, File, Lineages, State, first_base, possible_parents
from .fallbacks import requested_models, with_answering_models
from .sums import (
    FEW_STEPS,
    Sums,
    Totals,
    count_rows,
    difference,
    find_addends,
    find_run,
    size_of,
    sums,
    sums_of,
)

# Number of possible bases: the last process total, or totals of processes that ran at the same time.
_MOST_BASES = 8


class ProcessTotal(NamedTuple):
    """A process's spending, according to the total at its end."""

    ledger: Ledger
    scan: FileScan
    spent: Totals
    covered: list[Row]
    """The requests in it."""
    unlogged: Totals
    """The part that is in no request, by model. No model has only zeros."""
    uncovered: list[Row]
    """Requests since the total before it that it does not cover."""
    later: list[Row]
    """Requests after it."""
    moved: bool
    """True if lines in the file were moved, so that requests after the total may be in it."""


def process_totals(scans: list[FileScan], rows: Mapping[str, Row]) -> dict[str, list[ProcessTotal]]:
    """Return the totals by session, process by process; sessions without totals are missing."""
    states = _states(scans)
    lineages: Lineages = defaultdict(list)
    for session, session_states in states.items():
        lineages[session] = session_states
        for state in session_states:
            if state.ledger.start is not None:
                lineages[state.ledger.start].append(state)
            for compaction in state.file.scan.compactions:
                lineages[compaction].append(state)
    for session in _logged_parents(scans):
        lineages.setdefault(session, [])
    requests: dict[str, list[Row]] = {session: [] for session in states}
    for row in rows.values():
        if row.session in requests and row.kind not in ("unlogged", "error", "declined"):
            requests[row.session].append(row)
    if requested := requested_models(rows):
        states = {
            session: [_with_answering_models(state, requests[session], requested) for state in session_states]
            for session, session_states in states.items()
        }
    return {
        session: _session_totals(session_states, lineages, requests[session])
        for session, session_states in states.items()
    }


def _logged_parents(scans: list[FileScan]) -> set[str]:
    """Return the sessions that others were forked from, and whose own logs are there."""
    parents = {parent for scan in scans for parent in scan.origins.values()}
    own_rows = (row for scan in scans if parents for row in scan.rows if row.key not in scan.origins)
    return {row.session for row in own_rows if row.session in parents}


def _with_answering_models(state: State, requests: list[Row], requested: Mapping[str, str]) -> State:
    positions, place = state.file.positions, state.ledger.place
    # A total before all requests was moved there.
    earlier = [row for row in requests if not place or positions.get(row.key, -1) < place]
    return state._replace(ledger=with_answering_models(state.ledger, earlier, requested))


def _states(scans: list[FileScan]) -> dict[str, list[State]]:
    """Return each session's totals, in the order of its file."""
    by_key: dict[str, State] = {}
    for scan in scans:
        file = File(scan)
        for ledger in scan.ledgers:
            if ledger.kind == "state":
                state = State(ledger, file)
                earlier = by_key.setdefault(ledger.key, state)
                if earlier is not state:
                    # An older file copy does not show which requests came later.
                    by_key[ledger.key] = min(earlier, state, key=_rank_of_copy)
    states: dict[str, list[State]] = defaultdict(list)
    for state in by_key.values():
        states[state.ledger.session].append(state)
    for session_states in states.values():
        # A file copy may be more complete.
        session_states.sort(key=lambda state: state.ledger.place)
    return states


def _rank_of_copy(state: State) -> tuple[float, int]:
    """Return a smaller rank for the copy that shows more requests after the total."""
    until = state.ledger.until
    return float("inf") if until is None else until, -len(state.file.scan.rows)


# --- single sessions


def _session_totals(states: list[State], lineages: Lineages, requests: list[Row]) -> list[ProcessTotal]:
    if len(states) == 1 and (usual := _single_process_total(states[0], requests)):
        return [usual]
    if moved := _has_moved_lines(states, lineages, requests):
        states = sorted(states, key=lambda state: size_of(state.ledger.totals))
    doubtful = moved or _is_doubtful(states)
    # Processes that ran at the same time may have begun from the same state, even at the same moment.
    ends = Counter(state.ledger.place for state in states)
    shared = doubtful or len({state.ledger.start for state in states}) > 1 or len(ends) < len(states)
    positions = states[-1].file.positions
    # By position, so that requests after a total need no check; sub-agents' requests have no position.
    remaining = sorted(requests, key=lambda row: positions.get(row.key, -1))
    totals: list[ProcessTotal] = []
    earlier_bases: list[Base] = []
    for state in states:
        stop = bisect_left(remaining, state.ledger.place, key=lambda row: positions.get(row.key, -1))
        stop = len(remaining) if moved else stop
        pool = _Pool(state, [row for row in remaining[:stop] if doubtful or _may_cover(state, row)], doubtful)
        bases = [base for base in earlier_bases if base.start == state.ledger.start][:_MOST_BASES]
        alone = not bases and not shared
        if doubtful or not bases or ends[state.ledger.place] > 1:
            other_bases = [base for base in earlier_bases if base.start != state.ledger.start][:_MOST_BASES]
            inherited = first_base(state, lineages, pool.rows, doubtful=doubtful)
            bases += [*other_bases, inherited] if doubtful else [inherited, *other_bases]
        base, covered = _choose_moved(bases, pool) if moved else _choose(bases, pool, shared=not alone)
        earlier_bases.insert(
            0, Base(state.ledger.totals, state.ledger.duration, state.ledger.start, state.ledger.place)
        )
        taken = {row.key for row in covered}
        remaining = [row for row in remaining if row.key not in taken]
        uncovered = [row for row in (pool.rows if moved else pool.later(base)) if row.key not in taken]
        possible = {row.key for row in pool.rows}
        rest = (uncovered, [row for row in remaining if row.key not in possible], moved)
        totals.append(ProcessTotal(state.ledger, state.file.scan, *_spending(state, base, covered), *rest))
    return totals


def _has_moved_lines(states: list[State], lineages: Lineages, requests: list[Row]) -> bool:
    """Return true if lines were moved, as by a tool that sorts them by time.

    Then a total grew without a request or a compaction in the session file, or the totals show that the clock was
    set back, but no time falls.
    """
    parents = possible_parents(states[0], lineages, doubtful=True)
    parent_ledgers = [parent.ledger for parent in parents if parent.ledger.session != states[0].ledger.session]
    place, totals = 0, [Sums({}), *(sums(parent_ledger.totals) for parent_ledger in parent_ledgers)]
    for end, entries in groupby(states, key=lambda state: state.ledger.place):
        group = list(entries)
        if len(group) == 1 or not _ran_at_once(totals, group, requests, place):
            start_place = place
            for ledger, file in group:
                total, own_places = sums(ledger.totals), file.own_places
                if total not in totals and bisect_left(own_places, start_place) == bisect_left(own_places, end):
                    return True
                start_place, totals = end, [total]
        place, totals = end, [sums(group[-1].ledger.totals)]
    if not _is_doubtful(states) or any(ledger.set_back for ledger, _ in states):
        return False
    positions = states[-1].file.positions
    times = [row.time for row in sorted(requests, key=lambda row: positions.get(row.key, -1)) if row.key in positions]
    return all(earlier <= following for earlier, following in pairwise(time for time in times if time is not None))


def _ran_at_once(bases: Iterable[Sums], group: list[State], requests: list[Row], place: int) -> bool:
    """Return true if processes that began from the same total made exactly the requests since a place in the file.

    Without a compaction in the file, sums that are sought as for moved lines are right, too, and more often exact.
    """
    ledger, file = group[-1]
    if not file.scan.compactions:
        return False
    made = sums_of(row for row in requests if place <= file.positions.get(row.key, -1) < ledger.place)
    for base in bases:
        rest: Sums | None = made
        for state in group:
            spent = difference(sums(state.ledger.totals), base)
            rest = None if rest is None or spent is None else difference(rest, spent)
        if rest == {}:
            return True
    return False


def _is_doubtful(states: list[State]) -> bool:
    """Return true if the clock was set back, so that times do not tell which process made a request."""
    earlier_ledger: Ledger | None = None
    for ledger, file in states:
        # A fork begins with older times, from copies.
        if ledger.set_back and (earlier_ledger or not file.scan.origins):
            return True
        if ledger.start is not None:
            if ledger.written is not None and ledger.written < ledger.start:
                return True
            if earlier_ledger and earlier_ledger.start is not None and ledger.start < earlier_ledger.start:
                return True
        if ledger.duration is not None and ledger.duration == (earlier_ledger.duration if earlier_ledger else 0):
            return True
        earlier_ledger = ledger
    return False


def _single_process_total(state: State, requests: list[Row]) -> ProcessTotal | None:
    """Return the total in a session without copies if it equals the sum over all requests, as it mostly does.

    The general way gives the same result, and takes five times as long.
    """
    ledger, scan = state.ledger, state.file.scan
    if scan.origins or ledger.place < len(scan.rows) + len(scan.compactions):
        return None
    if count_rows(requests) != {model: amounts.without_cost for model, amounts in ledger.totals.items()}:
        return None
    return ProcessTotal(ledger, scan, ledger.totals, requests, {}, [], [], moved=False)


def _may_cover(state: State, row: Row) -> bool:
    """Return true if a request existed when the session total was noted; sub-agents have separate files."""
    ledger = state.ledger
    return row.key in state.file.positions or ledger.until is None or row.time is None or row.time < ledger.until


class _Pool(NamedTuple):
    """The requests that may be in a total."""

    state: State
    """The total, which a process noted at its end."""
    rows: list[Row]
    doubtful: bool
    """True if the clock was set back."""

    def recent(self, base: Base) -> list[Row]:
        """Return the rows since the process started; it ran as long as the lineage's duration grew."""
        ledger = self.state.ledger
        started = ledger.start or 0.0
        if ledger.written is not None and ledger.duration is not None and base.duration is not None:
            started = max(started, ledger.written - (ledger.duration - base.duration))
        return [row for row in self.rows if row.time is None or row.time >= started]

    def within(self, base: Base) -> list[Row]:
        """Return the rows since the process started that its clock allows; all later rows if the clock hides its time.

        Later times are those of a killed process, before the clock was set back.
        """
        ledger = self.state.ledger
        if ledger.written is None or (ledger.duration or 0.0) <= (base.duration or 0.0):
            return self.later(base)
        return [row for row in self.recent(base) if row.time is None or row.time <= ledger.written]

    def later(self, base: Base) -> list[Row]:
        """Return the rows after the base in the file, and sub-agents' rows."""
        positions = self.state.file.positions
        return [row for row in self.rows if positions.get(row.key, base.place) >= base.place]

    def all(self, _: Base) -> list[Row]:
        return self.rows

    def none(self, _: Base) -> list[Row]:
        """Return no rows: a process may make no request."""
        return []


def _choose(bases: Sequence[Base], pool: _Pool, *, shared: bool) -> tuple[Base, list[Row]]:
    """Return a process's base and its requests; if shared, other processes may have made some."""
    possible = _possible_bases(bases, pool)
    for select in (pool.recent, pool.later, pool.all, pool.none):
        for base, spent in possible:
            if sums_of(rows := select(base)) == spent:
                return base, rows
    if shared:
        for select in (pool.recent, pool.all) if pool.doubtful else (pool.recent,):
            for base, spent in possible:
                if (chosen := find_addends(select(base), spent)) is not None:
                    return base, chosen
    for select in (pool.within, pool.later, pool.recent) if pool.doubtful else (pool.recent,):
        for base, spent in possible:
            if difference(spent, sums_of(rows := select(base))) is not None:
                return base, rows
    base = possible[0][0] if possible else bases[0]
    return base, pool.recent(base) if possible else pool.rows


def _possible_bases(bases: Iterable[Base], pool: _Pool) -> list[tuple[Base, Sums]]:
    """Return the bases that a total contains, each with the spending since."""
    total = sums(pool.state.ledger.totals)
    rests = [(base, difference(total, sums(base.totals))) for base in bases]
    spent = [(base, difference(rest, sums_of(base.copied))) for base, rest in rests if rest is not None]
    return [(base, rest) for base, rest in spent if rest is not None]


def _choose_moved(bases: Sequence[Base], pool: _Pool) -> tuple[Base, list[Row]]:
    """Return a process's base and its requests, in a file whose lines were moved: places do not count.

    Without exact sums, the first requests that fit are in the total, so that none counts twice.
    """
    possible = _possible_bases(bases, pool)
    for base, spent in possible:
        run = find_run(pool.rows, spent)
        if run or not spent:
            return base, run
    if not possible:
        return bases[0], []
    ledger, positions = pool.state.ledger, pool.state.file.positions
    # Processes at once look like moved lines: requests before the total are likelier in it, and found first.
    likeliest_last = sorted(pool.rows, key=lambda row: positions.get(row.key, -1) < ledger.place)
    for base, spent in possible:
        if (chosen := find_addends(likeliest_last, spent, FEW_STEPS)) is not None:
            return base, chosen
    base, spent = possible[0]
    fitting: list[Row] = []
    for row in sorted(pool.rows, key=lambda row: row.time or 0.0):
        if (rest := difference(spent, sums_of([row]))) is not None:
            spent = rest
            fitting.append(row)
    return base, fitting


def _spending(state: State, base: Base, covered: list[Row]) -> tuple[Totals, list[Row], Totals]:
    """Return a process's spending, the requests in it, and the part that is in no request."""
    spent: Totals = {}
    unlogged: Totals = {}
    covered = [*covered, *base.copied]
    counted = count_rows(covered)
    for model, stated in state.ledger.totals.items():
        inherited, requests = base.totals.get(model, NOTHING), counted.get(model, NOTHING)
        if not state.ledger.splits:
            stated, inherited, requests = stated.unsplit, inherited.unsplit, requests.unsplit
        spent[model] = (stated - inherited).at_least_zero
        if any(remainder := (spent[model].without_cost - requests).at_least_zero):
            unlogged[model] = remainder
    return spent, covered, unlogged
