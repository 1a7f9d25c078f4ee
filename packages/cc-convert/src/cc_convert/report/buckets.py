"""Sums over rows per quarter-hour: enough for a report by time, session, model or project.

All time zones differ from UTC by whole quarter-hours, so buckets add up to the days in any zone.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, cast

from ..log_files.amounts import Amounts
from ..log_files.model_names import canonical_model
from ..log_files.rows import LABELS, Row

QUARTER = 900
"""Seconds in a quarter-hour."""


class Bucket(NamedTuple):
    """Usage by one session thread and model in a quarter-hour."""

    quarter: int | None
    """Number of the quarter-hour since 1970; `None` if the log has no time."""
    session: str
    project: str
    agent_type: str
    """Kind of sub-agent; `sub-agent` if the log does not name it, empty for the main thread."""
    model: str
    """The model's canonical name."""
    unlogged: bool
    """True if it is in the CLI totals and in no request."""
    branch: str
    host: str
    entrypoint: str
    version: str
    folder: str
    input: int
    output: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    thinking: int
    web_searches: int
    cost: float
    requests: int
    """Requests with an answer."""
    errors: int
    """Requests that failed."""
    unpriced: int
    """Tokens without a price; they are not in the cost."""
    first: float
    """Time of the first request; 0 without a time."""
    last: float

    @property
    def amounts(self) -> Amounts:
        """Return counts and cost."""
        return Amounts(*self[11:19])  # from `input` to `cost`

    @property
    def unlogged_cost(self) -> float:
        """Return the cost if it is in no request."""
        return self.cost if self.unlogged else 0.0

    @property
    def models(self) -> dict[str, float]:
        """Return the cost by model; empty for failed requests only."""
        return {self.model: self.cost} if self.requests or self.amounts.tokens or self.unlogged else {}


_FIRST_LABEL = Row._fields.index(LABELS[0])
_LABELS = slice(_FIRST_LABEL, _FIRST_LABEL + len(LABELS))
_FOLDER = Row._fields.index("folder")
_MODEL = Bucket._fields.index("model")
# Positions in the sums of a bucket, which are its fields from `input` on.
_COST, _REQUESTS, _ERRORS, _UNPRICED, _FIRST, _LAST = range(7, 13)

# Faster than `Bucket(…)`, as for rows.
_bucket = cast("Callable[[Iterable[object]], Bucket]", partial(tuple[object, ...].__new__, Bucket))


def fill_buckets(rows: Iterable[Row], costs: Iterable[float | None] | None = None) -> list[Bucket]:
    """Put rows into buckets. Without costs, the rows must be priced."""
    sums: dict[tuple[object, ...], list[float]] = {}
    for row, cost in zip(rows, costs, strict=True) if costs is not None else ((row, row.cost) for row in rows):
        _, kind, time, session, _, project, agent, agent_type, model, a, b, c, d, e, f, g, *_ = row
        quarter = None if time is None else int(time // QUARTER)
        thread = agent_type or (agent and "sub-agent")
        key = (quarter, session, project, thread, model, kind == "unlogged", *row[_LABELS], row[_FOLDER])
        numbers = sums.get(key)
        if numbers is None:
            numbers = sums[key] = [0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, time or 0.0, time or 0.0]
        numbers[0] += a
        numbers[1] += b
        numbers[2] += c
        numbers[3] += d
        numbers[4] += e
        numbers[5] += f
        numbers[6] += g
        if cost is None:
            numbers[_UNPRICED] += row.tokens
        else:
            numbers[_COST] += cost
        if kind not in ("unlogged", "declined", "advice"):
            numbers[_ERRORS if kind == "error" else _REQUESTS] += 1
        if time is not None:
            if time < numbers[_FIRST]:
                numbers[_FIRST] = time
            elif time > numbers[_LAST]:
                numbers[_LAST] = time
    return [
        _bucket((*key[:_MODEL], canonical_model(cast("str", key[_MODEL])), *key[_MODEL + 1 :], *numbers))
        for key, numbers in sums.items()
    ]
