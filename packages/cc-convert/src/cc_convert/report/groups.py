"""Group buckets into report lines: by day, week, month, session, model, project or agent."""

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta, tzinfo
from typing import Literal, TypeAlias

from ..log_files.rows import LABELS
from .buckets import QUARTER, Bucket
from .sums import Line

__all__ = ["MAIN", "NO_TIME", "GroupBy", "group", "total"]

GroupBy: TypeAlias = Literal[
    "day", "week", "month", "session", "model", "project", "agent", "branch", "host", "entrypoint", "version"
]
"""Grouping of report lines."""

NO_TIME = "unknown"
"""The period for buckets without a time, such as results that were printed as JSON."""
MAIN = "main"
"""The agent for requests by no sub-agent."""


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
        whole.add_line(line)
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
