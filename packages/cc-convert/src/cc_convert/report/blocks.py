"""Five-hour blocks, the unit for Claude Code's subscriptions."""

from collections.abc import Iterable
from datetime import datetime, tzinfo

from .buckets import Bucket
from .lines import Line

__all__ = ["BLOCK", "GAP", "blocks", "burn_rate"]

BLOCK = 5 * 3600.0
"""Seconds in a block."""
GAP = "gap"
"""`about["kind"]` in a line that covers time without requests."""
_HOUR = 3600
_LEAST_SPAN = 600.0


def blocks(buckets: Iterable[Bucket], zone: tzinfo | None = None, *, now: float | None = None) -> list[Line]:
    """Cut time into blocks, without buckets that have no time; the block around `now` is marked as `active`.

    A block starts at the full UTC hour of its first request. It ends five hours later, or with its last request if
    a gap longer than five hours follows; the gap has a separate line.
    """
    lines: list[Line] = []
    start = last = 0.0
    for bucket in sorted((bucket for bucket in buckets if bucket.quarter is not None), key=lambda bucket: bucket.first):
        if not lines or bucket.first >= start + BLOCK or bucket.first - last > BLOCK:
            if lines and bucket.first - last > BLOCK:
                lines.append(_line(last, bucket.first, GAP, zone))
                lines[-1].first, lines[-1].last = last, bucket.first
            start = float(bucket.first // _HOUR * _HOUR)
            lines.append(_line(start, start + BLOCK, "block", zone))
            last = 0.0
        lines[-1].add(bucket)
        last = max(last, bucket.last)
    if lines and now is not None and now < start + BLOCK and now - last <= BLOCK:
        lines[-1].about["kind"] = "active"
    return lines


def burn_rate(line: Line, now: float) -> tuple[float, float] | None:
    """Return a block's tokens and US dollars per hour so far; `None` in its first ten minutes, which say too little."""
    seconds = now - line.first
    return None if seconds < _LEAST_SPAN else (line.tokens * _HOUR / seconds, line.cost * _HOUR / seconds)


def _line(start: float, end: float, kind: str, zone: tzinfo | None) -> Line:
    name, until = (datetime.fromtimestamp(time, zone).strftime("%Y-%m-%d %H:%M") for time in (start, end))
    return Line(name, about={"kind": kind, "ends": until})
