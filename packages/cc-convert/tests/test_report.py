"""Sums by period, block and tool, and which requests are in them."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import pytest

from cc_convert.events import read_events
from cc_convert.logs import read_logs
from cc_convert.report.blocks import GAP, blocks, burn_rate
from cc_convert.report.buckets import Bucket, fill_buckets
from cc_convert.report.filters import Filter, FilterError, last_days, moment
from cc_convert.report.groups import GroupBy, group, total
from cc_convert.report.tools import tool_lines

Maker: TypeAlias = Callable[..., Any]


@pytest.fixture
def buckets(maker: Maker) -> Callable[..., list[Bucket]]:
    """The buckets of requests at these times."""

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
    found = group(buckets("2026-11-19T18:20:00Z", "2026-11-20T04:00:00Z"), "day", zone)

    assert [line.key for line in found] == days


@pytest.mark.parametrize(
    ("by", "start", "keys"),
    [
        ("week", 0, ["2026-11-09", "2026-11-16", "2026-11-30"]),
        ("week", 6, ["2026-11-15", "2026-11-29"]),
        ("month", 0, ["2026-11", "2026-12"]),
    ],
)
def test_weeks_and_months_are_named_by_their_start(buckets: Buckets, by: GroupBy, start: int, keys: list[str]) -> None:
    """LOG-40: 15 November 2026 is a Sunday."""
    found = buckets("2026-11-15T12:00:00Z", "2026-11-16T12:00:00Z", "2026-12-01T12:00:00Z")

    assert [line.key for line in group(found, by, UTC, week_start=start)] == keys


def test_lines_add_up_to_the_whole(maker: Maker, tmp_path: Path) -> None:
    """LOG-40"""
    for number, model in enumerate(["claude-sonnet-5", "claude-opus-5", "claude-opus-5-20260101", "unknown"]):
        log = maker(f"s{number}", project=f"/home/user/p{number % 2}")
        log.answer(model=model)
        log.answer(model="<synthetic>", isApiErrorMessage=True)
        log.write(tmp_path / f"{number}.jsonl")
    found = fill_buckets(read_logs(tmp_path).priced())

    for by in ("day", "week", "month", "session", "model", "project"):
        whole = total(group(found, by, UTC))
        assert (whole.requests, whole.errors, whole.input, whole.unpriced) == (4, 4, 400, 1420)
        assert whole.cost == pytest.approx(sum(bucket.cost for bucket in found))
    assert [line.key for line in group(found, "model")][:2] == ["claude-opus-5", "claude-sonnet-5"]
    assert [line.key for line in group(found, "project")] == ["/home/user/p0", "/home/user/p1"]


def test_what_has_no_time_has_a_line_of_its_own(buckets: Buckets) -> None:
    assert [line.key for line in group(buckets("never", "2026-11-20T12:00:00Z"), "day", UTC)] == [
        "2026-11-20",
        "unknown",
    ]


def test_the_share_of_the_cache_is_that_of_all_input(buckets: Buckets) -> None:
    [line] = group(buckets("2026-11-20T12:00:00Z"), "day", UTC)

    assert line.cache_hits == pytest.approx(1000 / 1400)


# --- blocks


def keys(lines: list[Any]) -> list[tuple[str, str]]:
    return [(line.key[8:], line.about["kind"]) for line in lines]


def test_a_block_starts_at_the_full_hour_and_ends_after_five(buckets: Buckets) -> None:
    """LOG-43"""
    found = buckets("2026-11-20T10:50:00Z", "2026-11-20T14:59:59Z", "2026-11-20T15:00:00Z", "2026-11-20T19:10:00Z")

    lines = blocks(found, UTC)

    assert keys(lines) == [("20 10:00", "block"), ("20 15:00", "block")]
    assert [line.requests for line in lines] == [2, 2]
    assert lines[0].about["ends"] == "2026-11-20 15:00"


def test_a_block_starts_at_the_full_hour_of_utc(buckets: Buckets) -> None:
    """LOG-43: in a zone with half an hour, it starts at half past."""
    assert keys(blocks(buckets("2026-11-20T10:50:00Z"), ZoneInfo("Asia/Kolkata"))) == [("20 15:30", "block")]


def test_five_hours_without_a_request_are_a_gap(buckets: Buckets) -> None:
    """LOG-43"""
    lines = blocks(buckets("2026-11-20T10:10:00Z", "2026-11-20T15:10:01Z"), UTC)

    assert keys(lines) == [("20 10:00", "block"), ("20 10:10", GAP), ("20 15:00", "block")]


def test_the_block_of_the_present_is_marked(buckets: Buckets) -> None:
    """LOG-43"""
    start = datetime(2026, 11, 20, 10, 10, tzinfo=UTC).timestamp()
    found = buckets("2026-11-20T10:10:00Z")

    assert blocks(found, UTC, now=start + 600)[-1].about["kind"] == "active"
    assert blocks(found, UTC, now=start + 5 * 3600)[-1].about["kind"] == "block"
    assert burn_rate(blocks(found, UTC)[-1], start + 1800) == (2840, pytest.approx(0.003))


# --- filters


def test_bounds_are_days_or_times_of_the_zone() -> None:
    """LOG-41"""
    zone = ZoneInfo("Europe/Berlin")

    assert moment("2026-11-20", zone) == datetime(2026, 11, 19, 23, tzinfo=UTC).timestamp()
    assert moment("20261120", zone, end=True) == datetime(2026, 11, 20, 23, tzinfo=UTC).timestamp()
    assert moment("2026-11-20T12:00", zone, end=True) == datetime(2026, 11, 20, 11, tzinfo=UTC).timestamp()
    assert moment("2026-11-20T12:00Z", zone) == datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()


def test_a_span_counts_whole_days_and_today_is_one() -> None:
    """LOG-41"""
    now = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)

    assert last_days("1d", UTC, now) == datetime(2026, 11, 20, tzinfo=UTC).timestamp()
    assert last_days("2w", UTC, now) == datetime(2026, 11, 7, tzinfo=UTC).timestamp()
    assert last_days("36h", UTC, now) == datetime(2026, 11, 19, 0, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "7x", "0d", "99999999d"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(FilterError, match="no span"):
        last_days(text, UTC, datetime.now(UTC))


def test_filters_let_through_what_they_name(maker: Maker, tmp_path: Path) -> None:
    """LOG-41"""
    for number in range(4):
        log = maker(f"{number}-session", project=f"/home/user/p{number}")
        log.answer(model=f"claude-opus-{number}", timestamp=f"2026-11-2{number}T12:00:00Z")
        log.write(tmp_path / f"{number}.jsonl")
    rows = read_logs(tmp_path).rows

    def left(**wanted: Any) -> str:
        return "".join(row.session[0] for row in Filter(**wanted).of(rows, lambda row: row.time))

    assert left() == "0123"
    assert left(since=moment("2026-11-21", UTC), until=moment("2026-11-22", UTC, end=True)) == "12"
    assert left(since=moment("2026-11-21T12:00", UTC), until=moment("2026-11-22T12:00", UTC)) == "1"
    assert (left(project="/p2"), left(model="opus-3"), left(session="0-")) == ("2", "3", "0")


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
    log.lines.append(
        {"type": "system", "subtype": "compact_boundary", "sessionId": "s1", "compactMetadata": {"preTokens": 8286}}
    )
    log.user("This session is being continued", isCompactSummary=True)
    log.user("<caveat>", isMeta=True)
    log.answer()

    events = [(event.kind, event.text, event.tokens) for event in read_events(str(log.write()))]

    assert events == [("prompt", "Hi", 0), ("compaction", "", 8286), ("text", "Hello.", 1400)]
