"""The last response's limits, and the callback for plan windows that fill up.

Makes no requests: it reads responses. Written on the background loop, read anywhere.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeAlias

from cc_types import LimitWindow, RateLimits

__all__ = ["LimitCallback", "LimitWatch"]

LimitCallback: TypeAlias = Callable[[LimitWindow, RateLimits], object]
"""A function called with the window that has passed a threshold, and all limits in that response."""

logger = logging.getLogger(__name__)


class LimitWatch:
    """Keeps the last known limits, and calls back when a window passes a threshold, a used share above 0.

    Once for each threshold, and again after the window was reset. A window that refuses has passed all thresholds.
    """

    def __init__(self, callback: LimitCallback | None, thresholds: Sequence[float]) -> None:
        for threshold in thresholds:
            if not 0 < threshold <= 1:
                raise ValueError(f"limit_thresholds must be shares above 0 and at most 1, such as 0.8, not {threshold}")
        self.last: RateLimits | None = None
        """The limits in the last response that had any."""
        self.login_expires_at: datetime | None = None
        """Time when a login with `/login` ends, as Claude Code reported it last."""
        self._callback = callback
        self._thresholds = tuple(thresholds)
        self._passed: dict[str, tuple[datetime | None, float]] = {}

    def note(self, limits: RateLimits, loop: asyncio.AbstractEventLoop) -> None:
        """Store a response's limits; the callback runs on `loop`, unless that has ended."""
        self.last = limits
        for window in limits.windows:
            if self._passes(window) and (callback := self._callback) is not None:
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(_call, callback, window, limits)

    def note_login(self, expires_at: datetime | None) -> None:
        """Store the login's end, None for another kind of login."""
        self.login_expires_at = expires_at

    def _passes(self, window: LimitWindow) -> bool:
        """Return true if the window has just passed a new threshold."""
        used = 1.0 if window.status == "rejected" else window.utilization or 0.0
        now = max((threshold for threshold in self._thresholds if threshold <= used), default=0.0)
        resets_at, before = self._passed.get(window.kind, (None, 0.0))
        if window.resets_at != resets_at:
            before = 0.0
        # Responses to parallel requests may arrive in any order, so values never decrease within a window.
        self._passed[window.kind] = (window.resets_at, max(now, before))
        return now > before


def _call(callback: LimitCallback, window: LimitWindow, limits: RateLimits) -> None:
    try:
        callback(window, limits)
    except Exception:
        logger.exception("The callback for limits failed")
