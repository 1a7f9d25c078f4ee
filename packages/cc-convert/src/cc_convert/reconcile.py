"""Compare the rows with the CLI totals, session by session."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import cast

from .log_files.rows import NO_COUNTS, Counts, Row, add_counts, counts_of
from .logs import Logs
from .prices import Prices
from .totals.remainders import SessionTotal

__all__ = ["CENT", "KINDS", "Comparison", "reconcile"]

KINDS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "thinking", "web_searches")
"""The kinds in `Counts`, in order."""
CENT = 0.01
"""Smallest reported difference in cost: below it, both round to the same or neighbouring cents."""


@dataclass(frozen=True)
class Comparison:
    """Comparison for one session."""

    session: str
    project: str
    requests: Counts
    """Sum over the requests that the CLI total covers."""
    unlogged: Counts
    """Part that is in the CLI total and in no request, such as a compaction; a separate row in every report."""
    stated: Counts
    """The CLI total, without the part that a fork inherited."""
    outside: Counts
    """Requests in the session that no total covers: from a killed or running process. Not a difference."""
    cost: float
    """Cost by the price list, for requests and unlogged usage together."""
    stated_cost: float
    """Cost according to the CLI."""
    doubtful: int
    """Tokens that may be counted twice, see `SessionTotal.doubtful`."""

    @property
    def difference(self) -> Counts:
        """Return the rows' counts minus the CLI counts, by kind."""
        rows = add_counts(self.requests, self.unlogged)
        return cast("Counts", tuple(mine - its for mine, its in zip(rows, self.stated, strict=True)))

    def by_kind(self) -> Iterable[tuple[str, int, int, int, int, int]]:
        """Return each kind with the numbers of requests, unlogged, stated, difference and outside."""
        return zip(KINDS, self.requests, self.unlogged, self.stated, self.difference, self.outside, strict=True)

    @property
    def cost_difference(self) -> float:
        """Return the rows' cost minus the CLI cost."""
        return self.cost - self.stated_cost

    @property
    def agrees(self) -> bool:
        """Return true if both are equal, to the token and to the cent."""
        # Some versions' transcripts do not count thinking separately, and it is part of the output anyway.
        counts = [difference for kind, difference in zip(KINDS, self.difference, strict=True) if kind != "thinking"]
        return not any(counts) and abs(self.cost_difference) < CENT


def reconcile(logs: Logs, prices: Prices | None = None) -> list[Comparison]:
    """Compare each session for which the CLI noted a total, sorted by id."""
    rows = {row.key: row for row in logs.priced(prices, "calculate") if row.kind not in ("error", "declined")}
    by_session: dict[str, list[Row]] = {}
    for row in rows.values():
        by_session.setdefault(row.session, []).append(row)
    return [
        _compare(session, total, by_session.get(session, []), rows) for session, total in sorted(logs.totals.items())
    ]


def _compare(session: str, total: SessionTotal, session_rows: list[Row], rows: dict[str, Row]) -> Comparison:
    unlogged = [row for row in session_rows if row.kind == "unlogged"]
    requests = [row for row in session_rows if row.kind != "unlogged"]
    covered = requests if total.covered is None else [rows[key] for key in sorted(total.covered)]
    keys = {row.key for row in covered}
    stated = _sum(counts for counts, _ in total.spent.values())
    if not total.splits:
        # In such a total, only the sum over both kinds of writes can be compared.
        hour = sum(row.cache_write_1h for row in [*covered, *unlogged])
        stated = (*stated[:3], stated[3] + stated[4] - hour, hour, *stated[5:])
    return Comparison(
        session,
        next((row.project for row in session_rows if row.project), ""),
        _sum(counts_of(row) for row in covered),
        _sum(counts_of(row) for row in unlogged),
        stated,
        _sum(counts_of(row) for row in requests if row.key not in keys),
        sum(row.cost or 0.0 for row in [*covered, *unlogged]),
        sum(cost for _, cost in total.spent.values()),
        total.doubtful,
    )


def _sum(parts: Iterable[Counts]) -> Counts:
    return reduce(add_counts, parts, NO_COUNTS)
