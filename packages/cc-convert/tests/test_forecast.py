"""Forecasts for a plan's windows."""

import pytest

from cc_convert.report.forecast import Forecast, WindowUse, forecast

NOW = 1_795_000_000.0
RESET = NOW + 3 * 3600


def uses(*points: tuple[float, float], kind: str = "five_hour", resets: float | None = RESET) -> list[WindowUse]:
    """Return observations: minutes ago, and percent."""
    return [WindowUse(kind, NOW - minutes * 60, percent / 100, resets) for minutes, percent in points]


def of(observations: list[WindowUse]) -> Forecast | None:
    return forecast(observations, max(observations, key=lambda use: use.time), NOW)


def about(full: float | None, at_reset: float, span: float) -> object:
    return pytest.approx((full, at_reset, span))


def test_a_window_is_full_at_the_pace_of_the_last_hour() -> None:
    """LOG-60: an older observation does not count."""
    assert of(uses((200, 0), (60, 40), (30, 50), (0, 70))) == about(NOW + 3600, 1.6, 3600)


def test_a_window_that_is_reset_before_it_is_full_has_a_share() -> None:
    """LOG-60"""
    assert of(uses((60, 40), (30, 45), (0, 50))) == about(None, 0.8, 3600)


def test_a_long_window_has_the_pace_of_the_last_day() -> None:
    """LOG-60"""
    day = uses((1440, 10), (600, 20), (0, 34), kind="seven_day", resets=NOW + 5 * 86400)

    assert of(day) == about(NOW + 2.75 * 86400, 1.54, 86400)
