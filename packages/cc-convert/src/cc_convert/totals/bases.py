"""The state from which a session's first process began: nothing, or the total of the forked session.

A fork by the CLI takes the parent total over, if there was one at that time; a fork by the SDK takes none.
Sums come first, then copies in the file, then times: the clock may have been behind at the fork.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple, TypeAlias

from ..log_files.rows import FileScan, Ledger, Row
from .sums import Sums, Totals, difference, size_of, sums, sums_of


class File:
    """A scanned file, with places of its requests."""

    def __init__(self, scan: FileScan) -> None:
        self.scan = scan

    @cached_property
    def positions(self) -> dict[str, int]:
        """Positions of the main thread's requests, and of compactions.

        A file that several files were joined into has sub-agents' requests anywhere. Computed on first use: most files
        need no positions.
        """
        positions = {**self.scan.compactions}
        taken, place = {*self.scan.compactions.values()}, 0
        for row in self.scan.rows:
            while place in taken:
                place += 1
            if not row.agent:
                positions[row.key] = place
            place += 1
        return positions

    @cached_property
    def own_places(self) -> list[int]:
        """The same positions without copies, in order."""
        return sorted(place for key, place in self.positions.items() if key not in self.scan.origins)


class State(NamedTuple):
    """A total that a CLI process noted at its end, and the file with it."""

    ledger: Ledger
    file: File


Lineages: TypeAlias = dict[float | str, list[State]]
"""Totals by session, by lineage start, and by compaction in the session file.

A forked session without totals has an empty list, if its log is there.
"""


class Base(NamedTuple):
    """The state from which a process began."""

    totals: Totals
    duration: float | None
    start: float | None = None
    place: int = 0
    """The total's place in the session file; 0 if it is in another session's file."""
    copied: tuple[Row, ...] = ()
    """A parent's requests, if the parent total is not available."""


def possible_parents(state: State, lineages: Lineages, *, doubtful: bool) -> list[State]:
    """Return the totals that a session's first process can have begun from."""
    start, scan = state.ledger.start, state.file.scan
    origins = dict.fromkeys(() if scan.is_sdk_fork else scan.origins.values())
    # A copied compaction does not name the parent.
    parents = [parent for key in (*origins, *scan.compactions) for parent in lineages.get(key, ())]
    if start is None:
        return parents
    # If the clock was behind at the fork, the start is earlier than the parent's.
    if not doubtful:
        parents = [parent for parent in parents if (parent.ledger.start or 0.0) > start]
    return [*parents, *lineages[start]]


def first_base(state: State, lineages: Lineages, pool: list[Row], *, doubtful: bool) -> Base:
    """Return the base for a session's first process: nothing, or the forked session total."""
    ledger = state.ledger
    total = sums(ledger.totals)
    candidates = [
        (relative, spent)
        for relative in possible_parents(state, lineages, doubtful=doubtful)
        if relative.ledger.session != ledger.session
        and _may_be_taken_over(relative.ledger, state)
        and (spent := difference(total, sums(relative.ledger.totals))) is not None
        and (spent or _was_first(relative, state))
    ]
    candidates.sort(key=lambda item: size_of(item[0].ledger.totals), reverse=True)
    scan = state.file.scan
    copied = tuple(row for row in scan.rows if row.key in scan.origins and not scan.is_sdk_fork)
    own_sums = sums_of(pool) if candidates or copied else Sums({})
    if own_sums == total:
        return Base({}, 0.0)
    forked = [item for item in candidates if _was_copied(item[0], state)]
    for candidate, _ in [item for item in (*forked, *candidates) if own_sums and item[1] == own_sums] or forked:
        return Base(candidate.ledger.totals, candidate.ledger.duration)
    has_parents = all(parent in lineages for parent in scan.origins.values())
    if difference(total, sums_of(copied)) is None or _is_younger(state, copied, has_parents):
        copied = ()
    return Base({}, 0.0, copied=copied)


def _is_younger(state: State, copied: Iterable[Row], has_parents: bool) -> bool:
    """Return true if a lineage is younger than the copied requests.

    Then it took over no total: the parent was killed, or still ran. If the clock was behind at the fork, the start
    does not tell, and a total would be in the parents' logs.
    """
    start, first_time = state.ledger.start, _first_own_time(state)
    times = [row.time for row in copied if row.time is not None]
    is_behind = first_time is not None and any(time > first_time for time in times)
    return any(time < start for time in times if start is not None) or (is_behind and has_parents)


def _may_be_taken_over(parent: Ledger, fork: State) -> bool:
    """Return true if times allow that a fork's process began from another session's total.

    Then it kept the start, or put it as long before its own start as the lineage had run, if the clock was behind.
    """
    ledger, first_time = fork.ledger, _first_own_time(fork)
    if ledger.start is None or ledger.start == parent.start:
        return True
    return first_time is None or ledger.start + (parent.duration or 0.0) <= first_time


def _was_first(parent: State, fork: State) -> bool:
    """Return true if a session had a total before another session noted the same total.

    After a compaction, a fork has no copy of a request that names the parent.
    """
    if parent.ledger.session in fork.file.scan.origins.values():
        return True
    if fork.ledger.session in parent.file.scan.origins.values():
        return False
    parent_rank, fork_rank = [
        (not _has_own_requests(state), state.ledger.duration or 0.0, state.ledger.session) for state in (parent, fork)
    ]
    return parent_rank < fork_rank


def _has_own_requests(state: State) -> bool:
    """Return true if the session's file has a request before the total that is not a copy."""
    place, file = state.ledger.place, state.file
    keys = (row.key for row in file.scan.rows if row.key not in file.scan.origins)
    return any(file.positions.get(key, place) < place for key in keys)


def _first_own_time(fork: State) -> float | None:
    """Return the time of the first request before a fork's total that is not a copy, or the total time."""
    ledger, file = fork.ledger, fork.file
    rows = (row for row in file.scan.rows if row.key not in file.scan.origins)
    places = ((row.time, file.positions.get(row.key, ledger.place)) for row in rows)
    own_times = (time for time, place in places if time is not None and place < ledger.place)
    return next(own_times, ledger.written)


def _was_copied(state: State, fork: State) -> bool:
    """Return true if a fork copied the last request or compaction before another session's total."""
    positions, copies = state.file.positions, fork.file.positions
    last_place = max((place for key, place in positions.items() if key in copies), default=-1)
    return last_place >= 0 and not any(last_place < place < state.ledger.place for place in positions.values())
