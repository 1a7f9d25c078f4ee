import copy
import pickle
from datetime import UTC, datetime, timedelta

import pytest

from cc_types import APIError, JsonValue, LimitWindow, PlanLimitError, RateLimit, RateLimits

RESET, WEEK = 1795356000, 1795694400
# Artificial values, from public descriptions of the names.
HEADERS = {
    "Anthropic-Ratelimit-Unified-Status": "allowed",
    "anthropic-ratelimit-unified-reset": str(RESET),
    "anthropic-ratelimit-unified-representative-claim": "five_hour",
    "anthropic-ratelimit-unified-fallback-percentage": "0.5",
    "anthropic-ratelimit-unified-5h-status": "allowed",
    "anthropic-ratelimit-unified-5h-reset": str(RESET),
    "anthropic-ratelimit-unified-5h-utilization": "0.42",
    "anthropic-ratelimit-unified-7d-status": "allowed_warning",
    "anthropic-ratelimit-unified-7d-reset": str(WEEK),
    "anthropic-ratelimit-unified-7d-utilization": "0.91",
    "anthropic-ratelimit-unified-7d-surpassed-threshold": "0.9",
    "anthropic-ratelimit-unified-overage-status": "rejected",
    "anthropic-ratelimit-unified-overage-disabled-reason": "out_of_credits",
    "retry-after": "5",
}
USED_UP = {
    **HEADERS,
    "Anthropic-Ratelimit-Unified-Status": "rejected",
    "anthropic-ratelimit-unified-5h-status": "rejected",
    "anthropic-ratelimit-unified-5h-utilization": "1.02",
}


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def read(headers: dict[str, str]) -> RateLimits:
    limits = RateLimits.from_headers(headers)
    assert limits is not None
    return limits


def hear(info: dict[str, JsonValue]) -> RateLimits:
    limits = RateLimits.from_event(info)
    assert limits is not None
    return limits


def test_plan_windows_are_read_from_headers_also_unknown_windows() -> None:
    """SDK-ADD-16."""
    limits = read(HEADERS)

    assert (limits.status, limits.resets_at, limits.decided_by) == ("allowed", at(RESET), "five_hour")
    assert limits.windows == (
        LimitWindow(kind="five_hour", utilization=0.42, resets_at=at(RESET), status="allowed"),
        LimitWindow(kind="seven_day", utilization=0.91, resets_at=at(WEEK), status="allowed_warning"),
        LimitWindow(kind="overage", status="rejected"),
    )
    assert limits.window("seven_day") == limits.windows[1]
    assert limits.window("seven_day_opus") is None
    assert limits.other == {
        "anthropic-ratelimit-unified-fallback-percentage": "0.5",
        "anthropic-ratelimit-unified-7d-surpassed-threshold": "0.9",
        "anthropic-ratelimit-unified-overage-disabled-reason": "out_of_credits",
    }
    assert (limits.exhausted, limits.exhausted_until) == (None, None)


def test_the_limits_of_an_api_key_are_read_from_headers() -> None:
    """SDK-ADD-16: the API's documented headers."""
    limits = read(
        {
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "7",
            "anthropic-ratelimit-requests-reset": "2026-11-22T12:00:30Z",
            "anthropic-ratelimit-input-tokens-remaining": "29000",
        }
    )

    reset = datetime(2026, 11, 22, 12, 0, 30, tzinfo=UTC)
    assert limits.rates == (
        RateLimit(kind="requests", limit=50, remaining=7, resets_at=reset),
        RateLimit(kind="input_tokens", remaining=29000),
    )
    assert limits.windows == ()
    assert limits.exhausted is None


def test_a_response_without_limits_has_none() -> None:
    assert RateLimits.from_headers({"request-id": "req_1", "retry-after": "5"}) is None
    assert RateLimits.from_headers({}) is None


@pytest.mark.parametrize("odd", ["", "nan", "inf", "-1", "many", "1e400", "9" * 400])
def test_an_invalid_value_is_kept_and_not_interpreted(odd: str) -> None:
    """SDK-ADD-16."""
    name = "anthropic-ratelimit-unified-5h-utilization"
    limits = read({name: odd, "anthropic-ratelimit-requests-remaining": odd})

    assert limits.windows in ((), (LimitWindow(kind="five_hour"),))
    assert limits.other == {name: odd, "anthropic-ratelimit-requests-remaining": odd}


def test_a_reset_may_be_in_seconds_in_milliseconds_or_a_date() -> None:
    for value in ("1795356000", "1795356000000", "1795356000.0", "2026-11-22T14:00:00Z", "2026-11-22T15:00:00+01:00"):
        limits = read({"anthropic-ratelimit-unified-reset": value})
        assert limits.resets_at == at(RESET), value


def test_of_several_used_up_windows_the_last_one_to_reset_counts() -> None:
    """SDK-ADD-16."""
    limits = read({**USED_UP, "anthropic-ratelimit-unified-7d-status": "rejected"})

    assert limits.exhausted is not None
    assert (limits.exhausted.kind, limits.exhausted_until) == ("seven_day", at(WEEK))
    assert read(USED_UP).exhausted_until == at(RESET)


def test_a_plan_can_be_used_up_without_a_window() -> None:
    limits = read(
        {"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": str(RESET)},
    )

    assert limits.exhausted == LimitWindow(kind="plan", resets_at=at(RESET), status="rejected")
    assert limits.exhausted_until == at(RESET)


def test_the_event_of_the_cli_says_the_same_as_the_headers() -> None:
    """SDK-ADD-16: as CLI 2.1.329 sends it."""
    info: dict[str, JsonValue] = {
        "status": "rejected", "resetsAt": RESET, "rateLimitType": "five_hour", "overageStatus": "rejected",
        "overageResetsAt": WEEK, "overageDisabledReason": "out_of_credits", "isUsingOverage": False,
        "unifiedWindows": {
            "five_hour": {"utilization": 1.02, "resetsAt": RESET, "status": "rejected"},
            "seven_day": {"utilization": 0.91, "resetsAt": WEEK, "status": "allowed_warning", "surpassedThreshold": 1},
        },
    }  # fmt: skip
    of_event = hear(info)
    of_headers = read({**USED_UP, "anthropic-ratelimit-unified-overage-reset": str(WEEK)})

    assert of_event.windows == of_headers.windows
    assert (of_event.status, of_event.exhausted_until) == (of_headers.status, of_headers.exhausted_until)
    assert of_event.other == {"overageDisabledReason": "out_of_credits", "isUsingOverage": False}


def test_the_event_of_an_older_cli_has_the_one_window_that_decides() -> None:
    info: dict[str, JsonValue] = {"status": "allowed_warning", "rateLimitType": "seven_day", "utilization": 0.8}

    assert hear(info).windows == (LimitWindow(kind="seven_day", utilization=0.8, status="allowed_warning"),)
    odd: dict[str, JsonValue] = {"unifiedWindows": {"five_hour": "much", "seven_day": {"utilization": "?"}}, "new": 1}
    assert [window.kind for window in hear(odd).windows] == ["five_hour", "seven_day"]


def test_an_event_in_which_the_cli_found_no_limits_has_none() -> None:
    assert RateLimits.from_event({"status": "allowed", "isUsingOverage": False}) is None


def test_limits_know_their_age_and_are_written_and_read_again() -> None:
    """SDK-ADD-16."""
    limits = RateLimits.from_headers(HEADERS, observed_at=datetime.now(UTC) - timedelta(seconds=90))
    assert limits is not None

    assert 90 <= limits.age < 100
    assert RateLimits.model_validate_json(limits.model_dump_json()) == limits
    assert limits.model_dump(mode="json")["windows"][0]["resets_at"] == "2026-11-22T14:00:00Z"


def test_an_error_has_the_time_of_the_reset() -> None:
    """SDK-ADD-17."""
    resets_at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
    limits = read({**USED_UP, "anthropic-ratelimit-unified-5h-reset": str(resets_at.timestamp())})
    error = PlanLimitError(limits=limits, resets_at=resets_at, message="You have reached your limit.")

    assert isinstance(error, APIError)
    assert (error.status, error.error_type, error.retryable) == (429, "rate_limit_error", False)
    assert error.retry_after is not None
    assert 7190 < error.retry_after <= 7200
    assert f"five_hour is used up until {resets_at:%Y-%m-%d %H:%M} UTC" in str(error)
    for same in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (same.resets_at, same.limits, str(same)) == (resets_at, limits, str(error))


def test_a_window_that_resets_within_a_minute_may_be_waited_for() -> None:
    """SDK-ADD-17."""
    for seconds, retryable in ((-5, True), (50, True), (70, False)):
        resets_at = datetime.now(UTC) + timedelta(seconds=seconds)
        assert PlanLimitError(limits=read(USED_UP), resets_at=resets_at, message="").retryable is retryable
