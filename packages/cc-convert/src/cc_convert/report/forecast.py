"""Forecast the use of a plan window from its recent growth.

The pace is the growth between the oldest and the newest observation in the last hour, for longer windows in the last
day. Observations before a reset do not count.
"""

from collections.abc import Iterable
from typing import NamedTuple

_HOUR, _DAY = 3600.0, 86400.0
_SPANS = {"five_hour": _HOUR}
# Fewer data make no forecast: observations, part of the span, and growth. Claude Code rounds to whole percents.
_LEAST_COUNT, _LEAST_PART, _LEAST_GROWTH = 3, 6, 0.02
# Two observations of the same reset may differ by rounding.
_SAME_RESET = 120.0


class WindowUse(NamedTuple):
    """Use of a window at a time."""

    kind: str
    """`five_hour`, `seven_day`, or another name in the API."""
    time: float
    """Time of the observation, in seconds since 1970."""
    used: float
    """Used share of the limit; 1 is full."""
    resets: float | None
    """Time when the window is reset, in seconds since 1970, if known."""


class Forecast(NamedTuple):
    """Use of a window if it goes on growing at the same pace."""

    full: float | None
    """Time when it is full, in seconds since 1970; `None` if it is reset before."""
    at_reset: float
    """Used share at the reset; 1 or more if it is full before."""
    span: float
    """Seconds between the observations that the pace is from."""


def newest_uses(uses: Iterable[WindowUse]) -> list[WindowUse]:
    """Return each window's newest observation, in the order of the first observations."""
    newest: dict[str, WindowUse] = {}
    for use in uses:
        if use.kind not in newest or use.time >= newest[use.kind].time:
            newest[use.kind] = use
    return list(newest.values())


def forecast(uses: Iterable[WindowUse], newest: WindowUse, current_time: float) -> Forecast | None:
    """Return the forecast for a window from its newest and all other observations; `None` with too few data.

    These are less than three observations, less than ten minutes between them (four hours for windows that are longer
    than five hours), an older newest observation, or growth below two percent of the limit.
    """
    resets, span = newest.resets, _SPANS.get(newest.kind, _DAY)
    if resets is None or resets <= current_time or newest.used >= 1:
        return None
    window_uses = (use for use in uses if use.kind == newest.kind and newest.time - span <= use.time <= newest.time)
    recent = [use for use in window_uses if use.resets is not None and abs(use.resets - resets) <= _SAME_RESET]
    oldest = min(recent, key=lambda use: use.time, default=newest)
    elapsed, growth = newest.time - oldest.time, newest.used - oldest.used
    least = span / _LEAST_PART
    # Percents as floats: 0.12 - 0.10 is less than 0.02.
    if (
        len(recent) < _LEAST_COUNT
        or elapsed < least
        or current_time - newest.time > least
        or round(growth, 6) < _LEAST_GROWTH
    ):
        return None
    pace = growth / elapsed
    full_at = newest.time + (1 - newest.used) / pace
    return Forecast(full_at if full_at < resets else None, newest.used + pace * (resets - newest.time), elapsed)
