"""Report lines: sums over buckets by day, week, month, session, model, project or agent, and five-hour blocks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, tzinfo
from typing import Literal, TypeAlias

from ..log_files.amounts import NOTHING, Amounts
from ..log_files.rows import LABELS
from .buckets import QUARTER, Bucket

GroupBy: TypeAlias = Literal[
    "day", "week", "month", "session", "model", "project", "agent", "branch", "host", "entrypoint", "version", "folder"
]
"""Grouping of report lines."""

NO_TIME = "unknown"
"""The period for buckets without a time, such as results that were printed as JSON."""
MAIN = "main"
"""The agent for requests by no sub-agent."""
BLOCK = 5 * 3600.0
"""Seconds in a block."""
GAP = "gap"
"""`about["kind"]` in a line that covers time without requests."""
_HOUR = 3600
_LEAST_SPAN = 600.0
AHEAD = 900.0
"""Seconds that another machine's clock may be ahead."""


@dataclass
class Line:
    """The sums over some buckets."""

    key: str
    """Key that all buckets share, such as a day."""
    amounts: Amounts = NOTHING
    """All usage; US dollars for requests with a price."""
    requests: int = 0
    """Requests with an answer."""
    errors: int = 0
    """Requests that failed."""
    unpriced: int = 0
    """Tokens without a price; they are not in the cost."""
    unlogged_cost: float = 0.0
    """Cost of usage that is in the CLI totals and in no request, such as compactions."""
    first: float = 0.0
    """Time of the first request, in seconds since 1970; 0 if no time is known."""
    last: float = 0.0
    models: dict[str, float] = field(default_factory=dict[str, float])
    """Cost by model."""
    about: dict[str, str] = field(default_factory=dict[str, str])
    """More names, such as a session's project and title, or a block's end."""

    @property
    def tokens(self) -> int:
        """Return all tokens."""
        return self.amounts.tokens

    @property
    def cost(self) -> float:
        """Return US dollars, for all requests with a price."""
        return self.amounts.cost

    @property
    def cache_hits(self) -> float | None:
        """Return the share of the input that came from the cache; `None` without input."""
        all_input = self.tokens - self.amounts.output
        return self.amounts.cache_read / all_input if all_input else None

    def add(self, addend: "Bucket | Line") -> None:
        """Add a bucket, or another line."""
        for model, cost in addend.models.items():
            self.models[model] = self.models.get(model, 0.0) + cost
        self.amounts += addend.amounts
        self.requests += addend.requests
        self.errors += addend.errors
        self.unpriced += addend.unpriced
        self.unlogged_cost += addend.unlogged_cost
        if addend.first:
            self.first = min(self.first or addend.first, addend.first)
            self.last = max(self.last, addend.last)


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
    total_line = Line("total")
    for line in lines:
        total_line.add(line)
    return total_line


def _key(by: GroupBy, zone: tzinfo | None, week_start: int) -> Callable[[Bucket], str]:
    match by:
        case "session":
            return lambda bucket: bucket.session or NO_TIME
        case "model":
            return lambda bucket: bucket.model or NO_TIME
        case "agent":
            return lambda bucket: bucket.agent_type or MAIN
        case "project" | "branch" | "host" | "entrypoint" | "version" | "folder":
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


def blocks(buckets: Iterable[Bucket], zone: tzinfo | None = None, *, current_time: float | None = None) -> list[Line]:
    """Cut time into blocks, without buckets that have no time; the block around `current_time` is marked as `active`.

    A block starts at the full UTC hour of its first request. It ends five hours later, or with its last request if
    a gap longer than five hours follows; the gap has a separate line.
    """
    lines: list[Line] = []
    starts: list[tuple[float, Line]] = []
    start = end_time = 0.0
    for bucket in sorted((bucket for bucket in buckets if bucket.quarter is not None), key=lambda bucket: bucket.first):
        if not lines or bucket.first >= start + BLOCK or bucket.first - end_time > BLOCK:
            if lines and bucket.first - end_time > BLOCK:
                lines.append(_line(end_time, bucket.first, GAP, zone))
                lines[-1].first, lines[-1].last = end_time, bucket.first
            start = float(bucket.first // _HOUR * _HOUR)
            lines.append(_line(start, start + BLOCK, "block", zone))
            starts.append((start, lines[-1]))
            end_time = 0.0
        lines[-1].add(bucket)
        end_time = max(end_time, bucket.last)
    for start, line in starts:
        if (
            current_time is not None
            and start <= current_time + AHEAD
            and current_time < start + BLOCK
            and current_time - line.last <= BLOCK
        ):
            line.about["kind"] = "active"
    return lines


def without_future(buckets: Iterable[Bucket], current_time: float) -> tuple[list[Bucket], str]:
    """Return the buckets up to now, and a note about those of a clock that is ahead; empty if there are none."""
    all_buckets = list(buckets)
    past = [bucket for bucket in all_buckets if bucket.quarter is None or bucket.first <= current_time + AHEAD]
    future = sum(bucket.requests for bucket in all_buckets) - sum(bucket.requests for bucket in past)
    return past, f"note: {future:,} requests have times in the future, by a clock that was ahead" if future else ""


def burn_rate(line: Line, current_time: float) -> tuple[float, float] | None:
    """Return a block's tokens and US dollars per hour so far; `None` in its first ten minutes, which say too little."""
    seconds = current_time - line.first
    return None if seconds < _LEAST_SPAN else (line.tokens * _HOUR / seconds, line.cost * _HOUR / seconds)


def _line(start: float, end: float, kind: str, zone: tzinfo | None) -> Line:
    name, until = (datetime.fromtimestamp(time, zone).strftime("%Y-%m-%d %H:%M") for time in (start, end))
    return Line(name, about={"kind": kind, "ends": until})
