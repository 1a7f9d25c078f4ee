"""Sums by period, block and tool, and the selection of requests."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pytest

from cc_convert.log_files.events import read_events
from cc_convert.logs import read_logs
from cc_convert.report.buckets import Bucket, fill_buckets
from cc_convert.report.filters import FilterError, last_days, moment
from cc_convert.report.lines import GAP, blocks, group, total
from cc_convert.report.tools import tool_lines

Maker: TypeAlias = Callable[..., Any]


@pytest.fixture
def buckets(maker: Maker) -> Callable[..., list[Bucket]]:
    """Return the buckets for requests at these times."""

    def make(*times: str) -> list[Bucket]:
        log = maker()
        for time in times:
            log.answer(timestamp=time)
        return fill_buckets(read_logs(log.write()).priced())

    return make


Buckets: TypeAlias = Callable[..., list[Bucket]]


@pytest.mark.parametrize(
    ("zone", "days"),
    [
        (UTC, ["2026-11-19", "2026-11-20"]),
        (ZoneInfo("Asia/Tokyo"), ["2026-11-20"]),
        (ZoneInfo("America/New_York"), ["2026-11-19"]),
        (ZoneInfo("Asia/Kathmandu"), ["2026-11-20"]),
        (None, ["2026-11-19", "2026-11-20"]),
    ],
    ids=str,
)
def test_days_are_those_of_the_zone(buckets: Buckets, zone: tzinfo | None, days: list[str]) -> None:
    """LOG-41: Kathmandu is 5:45 ahead; `None` is this machine's zone. Seen elsewhere: another fixed zone by default."""
    lines = group(buckets("2026-11-19T18:20:00Z", "2026-11-20T04:00:00Z"), "day", zone)

    assert [line.key for line in lines] == days


def test_lines_add_up_to_the_whole(maker: Maker, tmp_path: Path) -> None:
    """LOG-40"""
    for number, model in enumerate(["claude-sonnet-5", "claude-opus-5", "claude-opus-5-20260101", "unknown"]):
        log = maker(f"s{number}", project=f"/home/user/p{number % 2}")
        log.answer(model=model)
        log.answer(model="<synthetic>", isApiErrorMessage=True)
        log.write(tmp_path / f"{number}.jsonl")
    everything = fill_buckets(read_logs(tmp_path).priced())

    for by in ("day", "week", "month", "session", "model", "project"):
        whole = total(group(everything, by, UTC))
        assert (whole.requests, whole.errors, whole.amounts.input, whole.unpriced) == (4, 4, 400, 1420)
        assert whole.cost == pytest.approx(sum(bucket.cost for bucket in everything))
    assert [line.key for line in group(everything, "model")][:2] == ["claude-opus-5", "claude-sonnet-5"]
    assert [line.key for line in group(everything, "project")] == ["/home/user/p0", "/home/user/p1"]


# --- blocks


@pytest.mark.parametrize(
    ("times", "zone", "lines"),
    [
        (
            ["10:50:00", "14:59:59", "15:00:00", "19:10:00"],
            "UTC",
            [("10:00", "15:00", "block", 2), ("15:00", "20:00", "block", 2)],
        ),
        (["10:50:00"], "Asia/Kolkata", [("15:30", "20:30", "block", 1)]),
        (
            ["10:10:00", "15:10:01"],
            "UTC",
            [("10:00", "15:00", "block", 1), ("10:10", "15:10", GAP, 0), ("15:00", "20:00", "block", 1)],
        ),
    ],
    ids=["full hour", "half past in a zone with half an hour", "five hours without a request"],
)
def test_blocks_start_at_full_utc_hours_and_pauses_are_gaps(
    buckets: Buckets, times: list[str], zone: str, lines: list[tuple[str, str, str, int]]
) -> None:
    """LOG-43"""
    cut = blocks(buckets(*(f"2026-11-20T{time}Z" for time in times)), ZoneInfo(zone))

    assert [(line.key, line.about["ends"], line.about["kind"], line.requests) for line in cut] == [
        (f"2026-11-20 {start}", f"2026-11-20 {end}", kind, requests) for start, end, kind, requests in lines
    ]


# --- filters


@pytest.mark.parametrize(
    ("text", "end", "time"),
    [
        ("2026-11-20", False, "2026-11-19T23:00Z"),
        ("20261120", True, "2026-11-20T23:00Z"),
        ("2026-11-20T12:00", True, "2026-11-20T11:00Z"),
        ("2026-11-20T12:00Z", False, "2026-11-20T12:00Z"),
    ],
)
def test_bounds_are_days_or_times_of_the_zone(text: str, time: str, *, end: bool) -> None:
    """LOG-41"""
    assert moment(text, ZoneInfo("Europe/Berlin"), end=end) == datetime.fromisoformat(time).timestamp()


@pytest.mark.parametrize(
    ("text", "time"), [("1d", "2026-11-20T00:00Z"), ("2w", "2026-11-07T00:00Z"), ("36h", "2026-11-19T00:30Z")]
)
def test_a_span_counts_whole_days_and_today_is_one(text: str, time: str) -> None:
    """LOG-41"""
    now = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)

    assert last_days(text, UTC, now) == datetime.fromisoformat(time).timestamp()


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "7x", "0d", "99999999d"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(FilterError, match="not a span"):
        last_days(text, UTC, datetime.now(UTC))


# --- tools and events


def test_tools_are_counted_with_their_times_and_failures(log: Any) -> None:
    """LOG-40"""
    calls = [{"type": "tool_use", "id": f"t{number}", "name": "Bash"} for number in range(3)]
    log.answer("msg_1", content=calls, timestamp="2026-11-20T10:00:00Z")
    for number, seconds in ((0, 1), (1, 9)):
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "four", "is_error": number == 1}
        log.user([result], timestamp=f"2026-11-20T10:00:0{seconds}Z")
    path = log.write()

    [line] = tool_lines(read_logs(path).priced(), read_events(str(path)))

    assert (line.key, line.calls, line.failures, line.unanswered) == ("Bash", 3, 1, 1)
    assert (line.seconds, line.quantile(0.5), line.result_characters) == ([1, 9], 9, 8)
    assert (line.output, line.cost) == (18, pytest.approx(0.0015))


def test_the_summary_of_a_compaction_is_no_prompt(log: Any) -> None:
    """LOG-27"""
    log.user("Hi")
    log.compaction(8286)
    log.user("This session is being continued", isCompactSummary=True)
    log.user("<caveat>", isMeta=True)
    log.answer()

    events = [(event.kind, event.text, event.tokens) for event in read_events(str(log.write()))]

    summary = ("attachment", "This session is being continued", 0)
    assert events == [("prompt", "Hi", 0), ("compaction", "", 8286), summary, ("text", "Hello.", 1400)]
