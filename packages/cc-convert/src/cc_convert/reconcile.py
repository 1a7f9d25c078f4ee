"""Compare the rows with the CLI totals, session by session."""

from collections.abc import Iterable
from dataclasses import dataclass

from .log_files.amounts import NOTHING, Amounts
from .log_files.rows import Row
from .logs import Logs
from .prices import Prices
from .totals.remainders import SessionTotal

__all__ = ["CENT", "Comparison", "reconcile"]

CENT = 0.01
"""Smallest reported difference in cost: below it, both round to the same or neighbouring cents."""


@dataclass(frozen=True)
class Comparison:
    """Comparison for one session."""

    session: str
    project: str
    requests: Amounts
    """Sum over the requests that the CLI total covers."""
    unlogged: Amounts
    """Part that is in the CLI total and in no request, such as a compaction; a separate row in every report."""
    stated: Amounts
    """The CLI total, without the part that a fork inherited."""
    outside: Amounts
    """Requests in the session that no total covers: from a killed or running process. Not a difference."""
    doubtful: int
    """Tokens that may be counted twice, see `SessionTotal.doubtful`."""

    @property
    def logged(self) -> Amounts:
        """Return the sum over the rows, requests and unlogged usage together."""
        return self.requests + self.unlogged

    @property
    def difference(self) -> Amounts:
        """Return the rows' amounts minus those of the CLI, which may be negative."""
        return self.logged - self.stated

    def by_kind(self) -> Iterable[tuple[str, int, int, int, int, int]]:
        """Return each kind of count with the numbers of requests, unlogged, stated, difference and outside."""
        columns = (self.requests, self.unlogged, self.stated, self.difference, self.outside)
        return zip(Amounts._fields[:7], *(amounts.counts for amounts in columns), strict=True)

    @property
    def agrees(self) -> bool:
        """Return true if both are equal, to the token and to the cent."""
        # Some versions' transcripts do not count thinking separately, and it is part of the output anyway.
        counts = self.difference._replace(thinking=0).counts
        return not any(counts) and abs(self.difference.cost) < CENT


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
    stated = sum(total.spent.values(), NOTHING)
    if not total.splits:
        # In such a total, only the sum over both kinds of writes can be compared.
        hour = sum(row.cache_write_1h for row in [*covered, *unlogged])
        stated = stated._replace(cache_write_5m=stated.unsplit.cache_write_5m - hour, cache_write_1h=hour)
    return Comparison(
        session,
        next((row.project for row in session_rows if row.project), ""),
        _sum(covered),
        _sum(unlogged),
        stated,
        _sum(row for row in requests if row.key not in keys),
        total.doubtful,
    )


def _sum(rows: Iterable[Row]) -> Amounts:
    return sum((row.amounts for row in rows), NOTHING)
