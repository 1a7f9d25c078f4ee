"""The limits that the API reports: as values, as an error, and as calls of a callback."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from anthropic import AsyncAnthropic, RateLimitError

from cc_loopback import LoopbackServer
from cc_messages import ClaudeCodeTools, RequestReport, request_context
from cc_messages.limit_watch import LimitWatch
from cc_types import LimitWindow, RateLimits
from warm_clients.api_data import MESSAGES
from warm_clients.client import Client
from warm_clients.fixtures import Connect
from warm_clients.waiting import eventually

PREFIX = "anthropic-ratelimit-unified"


def plan(
    used: float = 0.42, week: float = 0.3, *, status: str = "allowed", resets_in: float = 7200.0
) -> dict[str, str]:
    """Return a plan's headers, after public descriptions; the five-hour window decides."""
    reset = str(int(time.time() + resets_in))
    return {
        f"{PREFIX}-status": status,
        f"{PREFIX}-reset": reset,
        f"{PREFIX}-representative-claim": "five_hour",
        f"{PREFIX}-fallback-percentage": "0.5",
        f"{PREFIX}-5h-status": status,
        f"{PREFIX}-5h-reset": reset,
        f"{PREFIX}-5h-utilization": str(used),
        f"{PREFIX}-7d-status": "allowed",
        f"{PREFIX}-7d-reset": str(int(time.time() + 4 * 86400)),
        f"{PREFIX}-7d-utilization": str(week),
    }


async def ask(client: Client, *, stream: bool = False) -> httpx2.Response:
    return await client.http.post(MESSAGES, json=client.body("Hello.", stream=stream))


async def reported(client: Client, *, stream: bool = False) -> RequestReport:
    with request_context() as beside:
        await ask(client, stream=stream)
    assert beside.report is not None
    return beside.report


def used_shares(limits: RateLimits | None) -> dict[str, float | None]:
    return {} if limits is None else {window.kind: window.utilization for window in limits.windows}


@pytest.mark.parametrize("stream", [False, True])
async def test_the_limits_of_the_last_response_are_known(client: Client, stream: bool) -> None:
    """MSG-90"""
    client.api.fail_next(headers=plan(0.42), delay=0)
    await ask(client, stream=stream)

    limits = client.transport.limits
    assert used_shares(limits) == {"five_hour": 0.42, "seven_day": 0.3}
    assert limits is not None
    assert limits.age < 20
    await ask(client, stream=stream)  # this response says nothing about limits
    assert client.transport.limits is limits


async def test_a_plan_that_is_used_up_is_not_asked_again_within_seconds(client: Client) -> None:
    """MSG-91: also if the API asks for a retry."""
    headers = {**plan(1.01, status="rejected"), "x-should-retry": "true", "retry-after": "7200"}
    client.api.fail_next(429, headers=headers, message="You have reached your limit.")
    before = len(client.api.requests)
    claude = AsyncAnthropic(http_client=client.http, api_key="any", max_retries=5)
    with pytest.raises(RateLimitError) as caught:
        await claude.messages.create(**client.body("Hello."))
    assert len(client.api.requests) == before + 1
    response = caught.value.response
    assert (response.headers["x-should-retry"], response.headers["retry-after"]) == ("false", "7200")
    limits = RateLimits.from_headers(response.headers)
    assert limits is not None
    assert limits.exhausted is not None
    assert limits.exhausted.kind == "five_hour"
    latest = client.transport.limits
    assert latest is not None
    assert latest == limits.model_copy(update={"observed_at": latest.observed_at})


async def test_a_refusal_says_how_long_to_wait_and_the_process_continues(client: Client) -> None:
    """MSG-91: also if the API tells only until when."""
    client.api.fail_next(429, headers=plan(1.01, status="rejected", resets_in=2_000_000))
    refused = await ask(client)
    assert refused.headers["x-should-retry"] == "false"
    assert 1_999_980 < int(refused.headers["retry-after"]) <= 2_000_000
    client.api.fail_next(headers=plan(0.01), delay=0)
    answered = await ask(client)
    assert (refused.status_code, answered.status_code) == (429, 200)
    assert used_shares(client.transport.limits)["five_hour"] == 0.01


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(lambda: plan(1.0, status="rejected", resets_in=20), id="a window that resets in seconds"),
        pytest.param(lambda: {"retry-after": "1"}, id="a throttle"),
        pytest.param(plan, id="a throttle with windows that are not used up"),
    ],
)
async def test_a_refusal_of_seconds_may_be_repeated(client: Client, headers: Callable[[], dict[str, str]]) -> None:
    """MSG-91"""
    client.api.fail_next(429, headers=headers())
    response = await ask(client)
    assert response.status_code == 429
    assert "x-should-retry" not in response.headers


async def test_a_callback_is_called_once_per_threshold_in_the_requests_loop(connect: Connect) -> None:
    """MSG-92"""
    calls: list[tuple[str, float | None, int]] = []

    def on_limit(window: LimitWindow, limits: RateLimits) -> None:
        assert window in limits.windows
        calls.append((window.kind, window.utilization, threading.get_ident()))
        raise RuntimeError("an error of a callback")

    client = connect(on_limit=on_limit, limit_thresholds=(0.5, 0.9))
    reset = plan()
    for used in (0.4, 0.6, 0.7, 0.65, 0.95, 1.01):
        client.api.fail_next(headers={**reset, f"{PREFIX}-5h-utilization": str(used)}, delay=0)
        await ask(client)
    here = threading.get_ident()
    assert calls == [("five_hour", 0.6, here), ("five_hour", 0.95, here)]


def watched(*thresholds: float) -> tuple[LimitWatch, list[str]]:
    calls: list[str] = []
    watch = LimitWatch(lambda window, _: calls.append(f"{window.kind} {window.utilization}"), thresholds)
    return watch, calls


def limits_of(used: float | None, status: str = "allowed", *, days: int = 0) -> RateLimits:
    resets_at = datetime(2026, 11, 22, tzinfo=UTC) + timedelta(days=days)
    return RateLimits(windows=(LimitWindow(kind="w", utilization=used, resets_at=resets_at, status=status),))


async def test_each_threshold_counts_once_per_window_and_anew_after_a_reset() -> None:
    """MSG-92"""
    watch, calls = watched(0.8)
    for limits in (limits_of(0.81), limits_of(0.79), limits_of(0.82), limits_of(0.1, days=1), limits_of(0.9, days=1)):
        watch.note(limits, asyncio.get_running_loop())
    await asyncio.sleep(0)
    assert calls == ["w 0.81", "w 0.9"]


@pytest.mark.parametrize("threshold", [0, -0.1, 1.5, 80, float("nan")])
def test_a_threshold_that_is_no_share_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match=r"above 0 and at most 1, such as 0.8, not"):
        LimitWatch(None, [threshold])


@pytest.mark.worlds
async def test_a_report_has_the_start_and_the_wait_for_a_process(connect: Connect) -> None:
    """MSG-93"""
    client = connect(size=1)
    reports: list[RequestReport] = []
    for stream in (False, True):
        client.api.fail_next(headers=plan(0.6), delay=0)
        reports.append(await reported(client, stream=stream))
    first, second = reports
    assert (first.process_started, second.process_started) == (True, False)
    assert first.wait_seconds > second.wait_seconds >= 0
    assert (first.queue_length, second.queue_length) == (0, 0)
    assert [used_shares(report.rate_limits)["five_hour"] for report in reports] == [0.6, 0.6]


async def test_a_report_of_a_request_that_failed_has_the_limits_too(client: Client) -> None:
    """MSG-93"""
    client.api.fail_next(429, headers=plan(1.0, status="rejected"))
    limits = (await reported(client)).rate_limits
    assert limits is not None
    assert limits.status == "rejected"


@pytest.mark.worlds
async def test_the_limits_are_known_in_the_loop_of_the_cli_too(connect: Connect, shared_api: LoopbackServer) -> None:
    """MSG-90, MSG-91: the CLI reports changes only, and a plan that is used up stays so."""
    client = connect(env=shared_api.env("oauth"), size=1)
    client.api.fail_next(headers=plan(0.66), delay=0)
    with request_context(claude_code_tools=ClaudeCodeTools(tools=("Read",))):
        client.answers("Fine.")
        answered = await ask(client)
        assert answered.status_code == 200
        await eventually(lambda: client.transport.limits is not None)
        assert used_shares(client.transport.limits) == {"five_hour": 0.66, "seven_day": 0.3}
        headers = plan(1.01, status="rejected")
        for _ in range(2):  # the CLI reports the limit once
            client.api.fail_next(429, headers=headers, times=1)
            refused = await ask(client)
            assert (refused.status_code, refused.headers["x-should-retry"]) == (429, "false")
