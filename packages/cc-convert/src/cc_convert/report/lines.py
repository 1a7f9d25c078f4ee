"""Report lines: sums over buckets by day, week, month, session, model, project or agent."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, tzinfo
from typing import Literal, TypeAlias

from ..log_files.rows import LABELS
from .buckets import QUARTER, Bucket

__all__ = ["MAIN", "NO_TIME", "GroupBy", "Line", "group", "spell_cost", "total"]

GroupBy: TypeAlias = Literal[
    "day", "week", "month", "session", "model", "project", "agent", "branch", "host", "entrypoint", "version"
]
"""Grouping of report lines."""

NO_TIME = "unknown"
"""The period for buckets without a time, such as results that were printed as JSON."""
MAIN = "main"
"""The agent for requests by no sub-agent."""


@dataclass
class Line:
    """The sums over some buckets; the counts are those of `Row`."""

    key: str
    """Key that all buckets share, such as a day."""
    requests: int = 0
    """Requests with an answer."""
    errors: int = 0
    """Requests that failed."""
    input: int = 0
    output: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0
    thinking: int = 0
    web_searches: int = 0
    cost: float = 0.0
    """US dollars, for all requests with a price."""
    unpriced: int = 0
    """Tokens without a price; they are not in the cost."""
    unlogged_cost: float = 0.0
    """Cost of usage that is in the CLI's totals and in no request, such as compactions."""
    first: float = 0.0
    """Time of the first request, in seconds since 1970; 0 if no time is known."""
    last: float = 0.0
    """Time of the last request."""
    models: dict[str, float] = field(default_factory=dict[str, float])
    """Cost by model."""
    about: dict[str, str] = field(default_factory=dict[str, str])
    """Other facts about the line."""

    @property
    def tokens(self) -> int:
        """Return all tokens."""
        return self.input + self.output + self.cache_write_5m + self.cache_write_1h + self.cache_read

    @property
    def cache_hits(self) -> float | None:
        """Return the share of the input that came from the cache; `None` without input."""
        all_input = self.input + self.cache_write_5m + self.cache_write_1h + self.cache_read
        return self.cache_read / all_input if all_input else None

    def add(self, other: "Bucket | Line") -> None:
        """Add a bucket, or another line."""
        for model, cost in other.models.items():
            self.models[model] = self.models.get(model, 0.0) + cost
        for name in _ADDED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.first:
            self.first = min(self.first or other.first, other.first)
            self.last = max(self.last, other.last)


_ADDED = (
    "requests", "errors", "input", "output", "cache_write_5m", "cache_write_1h", "cache_read", "thinking",
    "web_searches", "cost", "unpriced", "unlogged_cost",
)  # fmt: skip


def spell_cost(cost: float, unpriced: int = 0) -> str:
    """Format US dollars for people, with `*` if some tokens have no price.

    Amounts between 0 and a cent have two more decimals.
    """
    return (f"${cost:,.4f}" if 0 < cost < 0.01 else f"${cost:,.2f}") + ("*" if unpriced else "")


def group(buckets: Iterable[Bucket], by: GroupBy, zone: tzinfo | None = None, *, week_start: int = 0) -> list[Line]:
    """Sum up buckets; a week starts at day `week_start`, 0 for Monday to 6 for Sunday.

    Periods come in their order; sessions by their last request; the others by cost, the highest first.
    """
    key = _key(by, zone, week_start)
    lines: dict[str, Line] = {}
    for bucket in buckets:
        name = key(bucket)
        line = lines.get(name)
        if line is None:
            line = lines[name] = Line(name)
            if by == "session":
                line.about = {"project": bucket.project, **dict.fromkeys(LABELS, "")}
        if by == "session":
            _add_labels(line, bucket)
        line.add(bucket)
    unsorted = list(lines.values())
    if by == "session":
        return sorted(unsorted, key=lambda line: (line.last, line.key))
    if by in ("day", "week", "month"):
        return sorted(unsorted, key=lambda line: line.key)
    return sorted(unsorted, key=lambda line: (-line.cost, line.key))


def _add_labels(line: Line, bucket: Bucket) -> None:
    """Collect a session's branches, machines, entry points and versions."""
    for name in LABELS:
        label, labels = getattr(bucket, name), line.about[name]
        if label and label not in labels.split(", "):
            line.about[name] = f"{labels}, {label}" if labels else label


def total(lines: Iterable[Line]) -> Line:
    """Return the sum over lines."""
    whole = Line("total")
    for line in lines:
        whole.add(line)
    return whole


def _key(by: GroupBy, zone: tzinfo | None, week_start: int) -> Callable[[Bucket], str]:
    match by:
        case "session":
            return lambda bucket: bucket.session or NO_TIME
        case "model":
            return lambda bucket: bucket.model or NO_TIME
        case "agent":
            return lambda bucket: bucket.agent_type or MAIN
        case "project" | "branch" | "host" | "entrypoint" | "version":
            return lambda bucket: getattr(bucket, by) or NO_TIME
        case "day":
            return _period(zone, date.isoformat)
        case "month":
            return _period(zone, lambda day: day.isoformat()[:7])
        case "week":
            return _period(zone, lambda day: (day - timedelta((day.weekday() - week_start) % 7)).isoformat())


def _period(zone: tzinfo | None, name: Callable[[date], str]) -> Callable[[Bucket], str]:
    names: dict[int | None, str] = {None: NO_TIME}

    def key(bucket: Bucket) -> str:
        quarter = bucket.quarter
        if quarter is not None and quarter not in names:
            names[quarter] = name(datetime.fromtimestamp(quarter * QUARTER, zone).date())
        return names[quarter]

    return key
