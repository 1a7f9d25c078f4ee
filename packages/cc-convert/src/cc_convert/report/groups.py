"""Group buckets into lines of a report: by day, week, month, session, model or project."""

from collections.abc import Callable, Iterable
from datetime import date, datetime, timedelta, tzinfo
from typing import Literal, TypeAlias

from ..log_files.rows import LABELS
from .buckets import QUARTER, Bucket
from .sums import Line

__all__ = ["NO_TIME", "GroupBy", "group", "total"]

GroupBy: TypeAlias = Literal[
    "day", "week", "month", "session", "model", "project", "branch", "host", "entrypoint", "version"
]
"""Grouping of the lines of a report."""

NO_TIME = "unknown"
"""The period of buckets without a time, such as results that were printed as JSON."""


def group(buckets: Iterable[Bucket], by: GroupBy, zone: tzinfo | None = None, *, week_start: int = 0) -> list[Line]:
    """Sum up buckets.

    Args:
        buckets: Buckets to sum up.
        by: Meaning of a line.
        zone: Time zone of the days; the local one by default.
        week_start: The first day of a week, 0 for Monday to 6 for Sunday.

    Returns:
        Periods in their order; sessions by their last request; the others by cost, the highest first.
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
    found = list(lines.values())
    if by == "session":
        return sorted(found, key=lambda line: (line.last, line.key))
    if by in ("day", "week", "month"):
        return sorted(found, key=lambda line: line.key)
    return sorted(found, key=lambda line: (-line.cost, line.key))


def _add_labels(line: Line, bucket: Bucket) -> None:
    """Collect all branches, machines, entry points and versions of a session."""
    for name in LABELS:
        label, known = getattr(bucket, name), line.about[name]
        if label and label not in known.split(", "):
            line.about[name] = f"{known}, {label}" if known else label


def total(lines: Iterable[Line]) -> Line:
    """Return the sum of lines."""
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
        case "project" | "branch" | "host" | "entrypoint" | "version":
            return lambda bucket: getattr(bucket, by) or NO_TIME
        case "day":
            return _period(zone, date.isoformat)
        case "month":
            return _period(zone, lambda day: day.isoformat()[:7])
        case "week":
            return _period(zone, lambda day: (day - timedelta((day.weekday() - week_start) % 7)).isoformat())


def _period(zone: tzinfo | None, name: Callable[[date], str]) -> Callable[[Bucket], str]:
    known: dict[int | None, str] = {None: NO_TIME}

    def key(bucket: Bucket) -> str:
        quarter = bucket.quarter
        if quarter is not None and quarter not in known:
            known[quarter] = name(datetime.fromtimestamp(quarter * QUARTER, zone).date())
        return known[quarter]

    return key
