"""A plan's usage windows: as Claude Code passes them to its status line, and as stream-json notes them.

Transcripts lack them. So a day's observations are cached, for `watch` and for forecasts.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import cast

from cc_types import JsonValue, RateLimits

from ..log_files.cache import Cache
from ..log_files.extract import time_of
from ..log_files.rows import FileScan
from ..report.forecast import Forecast, WindowUse, forecast, newest_uses

# Not a path of a log.
_ENTRY = "windows of the plan"
_NAMES = {"five_hour": "limit", "seven_day": "week"}
# Longer spans would need the weekday.
_DAY = timedelta(days=1)
# Seconds. Status lines are refreshed many times a minute.
_KEPT, _STEP = 86400.0, 300.0
_LONG_SPAN = 7200.0
_LONGEST = 40


def status_line_uses(rate_limits: object, current_time: datetime) -> list[WindowUse]:
    """Read `rate_limits` in the status line input."""
    if not isinstance(rate_limits, dict):
        return []
    windows: dict[str, JsonValue] = {}
    for kind, window in cast("dict[str, object]", rate_limits).items():
        fields = cast("dict[str, JsonValue]", window if isinstance(window, dict) else {})
        if isinstance(used := fields.get("used_percentage"), int | float):
            windows[kind] = {"utilization": used / 100, "resetsAt": fields.get("resets_at")}
    return _uses({"unifiedWindows": windows}, current_time)


def logged_uses(scans: Iterable[FileScan]) -> list[WindowUse]:
    """Return the observations in stream-json logs, with the times in the records before them."""
    uses: list[WindowUse] = []
    for scan in scans:
        for written, event in scan.limits:
            seconds = time_of(written or scan.began)
            if seconds is not None:
                uses += _uses(json.loads(event), datetime.fromtimestamp(seconds, UTC))
    return uses


def _uses(info: dict[str, JsonValue], current_time: datetime) -> list[WindowUse]:
    limits = RateLimits.from_event(info)
    uses: list[WindowUse] = []
    for window in limits.windows if limits else ():
        if window.utilization is not None:
            resets = window.resets_at.timestamp() if window.resets_at else None
            uses.append(WindowUse(window.kind, current_time.timestamp(), window.utilization, resets))
    return uses


def store_uses(uses: Sequence[WindowUse], earlier: Iterable[WindowUse]) -> None:
    """Store observations and those in the day before them, if the cache can be written."""
    kinds = list(dict.fromkeys(use.kind for use in (*earlier, *uses)))
    both = sorted((*earlier, *uses), key=lambda use: (kinds.index(use.kind), use.time))
    oldest = max(use.time for use in both) - _KEPT
    # In each step only the first observation, and the newest of all.
    firsts: dict[tuple[str, float], WindowUse] = {}
    for use in both:
        if use.time > oldest:
            firsts.setdefault((use.kind, use.time // _STEP), use)
    entries = dict.fromkeys((*firsts.values(), *newest_uses(both)))
    with suppress(OSError):
        Cache().store(_ENTRY, (list(map(tuple, entries)),))


def stored_uses() -> list[WindowUse]:
    """Return the stored observations."""
    with suppress(TypeError, ValueError):
        [entries] = Cache().load(_ENTRY)
        return [WindowUse(*values) for values in entries]
    return []


def running_uses(uses: Iterable[WindowUse], current_time: datetime) -> list[WindowUse]:
    """Return each window's newest observation, without windows that were reset since."""
    return [use for use in newest_uses(uses) if use.resets is not None and use.resets > current_time.timestamp()]


def spell_windows(
    windows: Iterable[WindowUse], uses: Sequence[WindowUse], current_time: datetime, zone: tzinfo | None, *, brief: bool
) -> list[str]:
    """Format the newest observation of each window for people, with resets, and forecasts from all observations.

    With `brief`, forecasts for windows that are reset before they are full are left out.
    """
    return [
        _spell(window, forecast(uses, window, current_time.timestamp()), current_time, zone, brief=brief)
        for window in windows
    ]


def _spell(
    window: WindowUse, prediction: Forecast | None, current_time: datetime, zone: tzinfo | None, *, brief: bool
) -> str:
    # Logs may contain any name.
    name = "".join(character for character in window.kind if character.isprintable())[:_LONGEST].replace("_", " ")
    text = f"{_NAMES.get(window.kind, name)} {window.used * 100:.0f}%"
    if window.resets is None or window.resets <= current_time.timestamp():
        return text
    text += f", resets {_moment(window.resets, current_time, zone)}"
    if prediction is None or (brief and prediction.full is None):
        return text
    span = f"{prediction.span / 3600:.0f} h" if prediction.span >= _LONG_SPAN else f"{prediction.span / 60:.0f} min"
    then = (
        f"full at {_moment(prediction.full, current_time, zone)}"
        if prediction.full
        else f"{prediction.at_reset:.0%} at the reset"
    )
    return f"{text}, at this pace {then}, from the last {span}"


def _moment(time: float, current_time: datetime, zone: tzinfo | None) -> str:
    moment = datetime.fromtimestamp(time, UTC)
    form = "%a %H:%M" if moment - current_time >= _DAY else "%H:%M"
    return f"{moment.astimezone(zone):{form}}"
