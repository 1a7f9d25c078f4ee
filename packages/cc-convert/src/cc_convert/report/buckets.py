"""Sums of rows per quarter of an hour: enough for a report by time, session, model or project.

Every time zone is a whole number of quarters away from UTC, so they add up to the days of any zone.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, cast

from ..log_files.model_names import canonical_model
from ..log_files.rows import LABELS, Row

__all__ = ["QUARTER", "Bucket", "fill_buckets"]

QUARTER = 900
"""Seconds in a quarter of an hour."""


class Bucket(NamedTuple):
    """Usage of one model by one thread of a session in a quarter of an hour."""

    quarter: int | None
    """Number of the quarter of an hour since 1970; `None` if the log has no time."""
    session: str
    project: str
    agent_type: str
    """Kind of sub-agent; `sub-agent` if the log does not name it, empty for the main thread."""
    model: str
    """The model's canonical name."""
    unlogged: bool
    """True if it is in the CLI's totals and in no request."""
    branch: str
    host: str
    entrypoint: str
    version: str
    input: int
    output: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    thinking: int
    web_searches: int
    cost: float
    """US dollars, of the requests with a price."""
    requests: int
    errors: int
    unpriced: int
    """Tokens without a price."""
    first: float
    """The time of the first request; 0 without a time."""
    last: float
    """The time of the last request."""


_FIRST_LABEL = Row._fields.index(LABELS[0])
_LABELS = slice(_FIRST_LABEL, _FIRST_LABEL + len(LABELS))
_MODEL = Bucket._fields.index("model")

# Faster than `Bucket(…)`, as for rows.
_bucket = cast("Callable[[Iterable[object]], Bucket]", partial(tuple[object, ...].__new__, Bucket))


def fill_buckets(rows: Iterable[Row], costs: Iterable[float | None] | None = None) -> list[Bucket]:
    """Put rows into buckets.

    Args:
        rows: The rows.
        costs: The cost of each; by default that of the rows, which must be priced.
    """
    sums: dict[tuple[object, ...], list[float]] = {}
    for row, cost in zip(rows, costs, strict=True) if costs is not None else ((row, row.cost) for row in rows):
        _, kind, time, session, _, project, agent, agent_type, model, a, b, c, d, e, f, g, *_ = row
        quarter = None if time is None else int(time // QUARTER)
        thread = agent_type or (agent and "sub-agent")
        key = (quarter, session, project, thread, model, kind == "unlogged", *row[_LABELS])
        found = sums.get(key)
        if found is None:
            found = sums[key] = [0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, time or 0.0, time or 0.0]
        found[0] += a
        found[1] += b
        found[2] += c
        found[3] += d
        found[4] += e
        found[5] += f
        found[6] += g
        if cost is None:
            found[10] += row.tokens
        else:
            found[7] += cost
        if kind not in ("unlogged", "declined"):
            found[9 if kind == "error" else 8] += 1
        if time is not None:
            if time < found[11]:
                found[11] = time
            elif time > found[12]:
                found[12] = time
    return [
        _bucket((*key[:_MODEL], canonical_model(cast("str", key[_MODEL])), *key[_MODEL + 1 :], *numbers))
        for key, numbers in sums.items()
    ]
