"""Usage windows of a plan, as Claude Code passes them to its status line.

Logs lack them, except for the API error of an exhausted plan. So the last values are cached for `watch`.
"""

from contextlib import suppress
from datetime import datetime, timedelta, tzinfo
from typing import cast

from cc_types import JsonValue, LimitWindow, RateLimits

from ..log_files.cache import Cache

__all__ = ["keep_limits", "kept_limits", "spell_windows", "told_limits"]

# Not a path of a log.
_ENTRY = "limits of the plan"
_NAMES = {"five_hour": "limit", "seven_day": "week"}
# Longer spans would need the weekday.
_DAY = timedelta(days=1)


def told_limits(rate_limits: object) -> RateLimits | None:
    """Read `rate_limits` of the status line's input; None if it is empty."""
    if not isinstance(rate_limits, dict):
        return None
    windows: dict[str, JsonValue] = {}
    for kind, window in cast("dict[str, object]", rate_limits).items():
        told = cast("dict[str, JsonValue]", window if isinstance(window, dict) else {})
        if isinstance(used := told.get("used_percentage"), int | float):
            windows[kind] = {"utilization": used / 100, "resetsAt": told.get("resets_at")}
    return RateLimits.from_event({"unifiedWindows": windows})


def spell_windows(limits: RateLimits, now: datetime, zone: tzinfo | None) -> list[str]:
    """Format the use of the windows and their reset times for people."""
    return [_spell(window, now, zone) for window in limits.windows if window.utilization is not None]


def keep_limits(limits: RateLimits) -> None:
    """Store the limits for `kept_limits()`, if the cache can be written."""
    with suppress(OSError):
        Cache().store(_ENTRY, (limits.model_dump_json(),))


def kept_limits(now: datetime) -> RateLimits | None:
    """Return the last stored limits without windows that were reset since; None if there are none."""
    with suppress(TypeError, ValueError):
        [kept] = Cache().load(_ENTRY)
        limits = RateLimits.model_validate_json(kept)
        running = tuple(one for one in limits.windows if one.resets_at is not None and one.resets_at > now)
        return limits.model_copy(update={"windows": running}) if running else None
    return None


def _spell(window: LimitWindow, now: datetime, zone: tzinfo | None) -> str:
    name = _NAMES.get(window.kind, window.kind.replace("_", " "))
    text = f"{name} {(window.utilization or 0.0) * 100:.0f}%"
    if window.resets_at is None or window.resets_at <= now:
        return text
    form = "%a %H:%M" if window.resets_at - now >= _DAY else "%H:%M"
    return f"{text}, resets {window.resets_at.astimezone(zone):{form}}"
