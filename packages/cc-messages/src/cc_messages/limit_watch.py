"""The last limits of a plan that the API has sent, and the callback for a window that passes a threshold."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeAlias

from cc_types import LimitWindow, RateLimits

logger = logging.getLogger(__name__)

LimitCallback: TypeAlias = Callable[[LimitWindow, RateLimits], object]
"""A function called with the window that has passed a threshold, and all limits in that response."""


class LimitWatch:
    """Keeps the facts that `ClaudeCodeTransport` shows, and calls back as described there for `on_limit`."""

    def __init__(self, callback: LimitCallback | None, thresholds: Sequence[float]) -> None:
        for threshold in thresholds:
            if not 0 < threshold <= 1:
                raise ValueError(f"limit_thresholds must be shares above 0 and at most 1, such as 0.8, not {threshold}")
        self.last: RateLimits | None = None
        self.login_expires_at: datetime | None = None
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
        """Store the end of the login, None for another kind of login."""
        self.login_expires_at = expires_at

    def _passes(self, window: LimitWindow) -> bool:
        """Return true if the window has just passed a new threshold."""
        used = 1.0 if window.status == "rejected" else window.utilization or 0.0
        threshold_passed = max((threshold for threshold in self._thresholds if threshold <= used), default=0.0)
        resets_at, highest_passed = self._passed.get(window.kind, (None, 0.0))
        if window.resets_at != resets_at:
            highest_passed = 0.0
        # Responses to parallel requests may arrive in any order, so values never decrease within a window.
        self._passed[window.kind] = (window.resets_at, max(threshold_passed, highest_passed))
        return threshold_passed > highest_passed


def _call(callback: LimitCallback, window: LimitWindow, limits: RateLimits) -> None:
    try:
        callback(window, limits)
    except Exception:
        logger.exception("The callback for limits failed")
