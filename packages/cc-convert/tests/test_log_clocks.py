"""Sums when the clock was set, on transcripts recorded with libfaketime, and on older copies."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cc_convert.logs import Logs, read_logs
from cc_convert.reconcile import reconcile

RECORDS = Path(__file__).parent / "transcripts" / "clock"
NAMES = sorted(path.name for path in RECORDS.iterdir())
# A compaction in the process hides which requests the total covers: a killed process may have made them.
AMBIGUOUS = "in_a_process_that_compacts_-1"
HOUR = 3600
TRANSCRIPTS = RECORDS.parent
RECORDINGS = sorted(path.parent.relative_to(TRANSCRIPTS).as_posix() for path in TRANSCRIPTS.rglob("served.json"))
# Before all recordings.
START = datetime(2026, 11, 22, tzinfo=UTC).timestamp()


def served(folder: Path) -> dict[str, tuple[int, ...]]:
    return {session: tuple(sums) for session, sums in json.loads((folder / "served.json").read_text("utf-8")).items()}


def sums(logs: Logs) -> dict[str, tuple[int, ...]]:
    sessions = {row.session for row in logs.rows}
    columns = {one: zip(*(row[9:14] for row in logs.rows if row.session == one), strict=True) for one in sessions}
    return {session: tuple(sum(column) for column in of_session) for session, of_session in columns.items()}


def doubts(logs: Logs) -> list[int]:
    compared = reconcile(logs)
    assert all(one.agrees for one in compared)
    return [one.doubtful for one in compared if one.doubtful]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", [name for name in NAMES if name != AMBIGUOUS])
def test_a_clock_that_was_set_changes_no_sum(name: str, strict: bool) -> None:
    """LOG-32, LOG-35: after a start, between turns and processes, before forks and compactions, after a kill."""
    logs = read_logs(RECORDS / name, strict=strict)

    assert (sums(logs), doubts(logs)) == (served(RECORDS / name), [])


def test_requests_that_may_count_twice_are_told(run: Any) -> None:
    """LOG-35, LOG-30: with a compaction, the clock's effect looks like a killed process."""
    logs = read_logs(RECORDS / AMBIGUOUS)

    [twice] = [sums(logs)[session][0] - numbers[0] for session, numbers in served(RECORDS / AMBIGUOUS).items()]
    [doubtful] = doubts(logs)
    assert 0 < twice < doubtful
    outcome = run("reconcile", RECORDS / AMBIGUOUS)
    assert (outcome.code, f"{doubtful:,} tokens may be counted twice" in outcome.err) == (1, True)
    assert "1 sessions differ from the CLI's total, or may" in run("doctor", RECORDS / AMBIGUOUS).out


def test_processes_at_once_before_and_after_a_compaction_keep_their_sums() -> None:
    """LOG-32: totals that follow each other without a request between are not moved lines."""
    source = TRANSCRIPTS / "casebook" / "processes_at_once_and_compaction"

    assert sums(read_logs(source)) == served(source)


# --- any step, at any time


class _Process(NamedTuple):
    start: float
    end: float


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _processes(lines: list[dict[str, Any]]) -> list[_Process]:
    """Return the start and end of processes in a session; a process runs for as long as the lineage's total grows."""
    processes: list[_Process] = []
    last = before = 0.0
    for line in lines:
        if line["type"] == "cost-state":
            processes.append(_Process(last - (line["totalDuration"] - before) / 1000, last))
            before = line["totalDuration"]
        last = _moment(line["timestamp"]) if "timestamp" in line else last
    return processes


def with_step(lines: list[dict[str, Any]], inherited: tuple[int, int], at: float, step: int) -> list[dict[str, Any]]:
    """Return lines as the CLI writes them if the clock is set at a time: totals keep the earliest start, and grow by
    the difference of two times, or fall, but not below zero.
    """
    processes = iter(_processes(lines))
    start, duration = inherited
    changed: list[dict[str, Any]] = []
    for line in lines:
        line = {**line}
        if "timestamp" in line:
            time = _moment(line["timestamp"])
            shifted = datetime.fromtimestamp(time + step * (time >= at), UTC)
            line["timestamp"] = shifted.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        elif line["type"] == "cost-state":
            process = next(processes)
            began = round(1000 * (process.start + step * (process.start >= at))) - duration
            start = min(start, began) if start else began
            ran = process.end - process.start + step * (process.start < at <= process.end)
            duration = max(0, duration + round(1000 * ran))
            line |= {"startTime": start, "totalDuration": duration}
        changed.append(line)
    return changed


@settings(max_examples=100)
@given(st.integers(-HOUR, 8 * HOUR), st.floats(0, 1))
@example(-1, 0.5)
@example(-2, 0.5)
@example(-HOUR, 0.9)
def test_any_step_at_any_time_changes_no_sum(tmp_path: Path, step: int, part: float) -> None:
    """LOG-35: between an hour back and eight hours on, in a session with three processes and a sub-agent."""
    source = RECORDS / "in_a_resumed_session_0"
    files = {path: list(map(json.loads, path.read_text("utf-8").splitlines())) for path in source.rglob("*.jsonl")}
    times = [_moment(line["timestamp"]) for lines in files.values() for line in lines if "timestamp" in line]
    at = min(times) - 1 + part * (max(times) - min(times) + 1)
    for path, lines in files.items():
        target = tmp_path / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(f"{json.dumps(line)}\n" for line in with_step(lines, (0, 0), at, step)), "utf-8")

    logs = read_logs(tmp_path)

    assert (sums(logs), doubts(logs)) == (served(source), [])


def sorted_by_time(lines: list[str], undated: str) -> list[str]:
    """Return lines as a tool may sort them; lines without a time are first, last, or stay behind a line with one."""
    keys: list[str] = []
    for line in lines:
        earlier = (keys or [""])[-1]
        keys.append(json.loads(line).get("timestamp") or {"first": "", "last": "~", "behind": earlier}[undated])
    return [line for _, line in sorted(zip(keys, lines, strict=True), key=lambda pair: pair[0])]


def counted_or_told(folder: Path, source: Path) -> bool:
    logs = read_logs(folder)
    return sums(logs) == served(source) or any(one.doubtful or not one.agrees for one in reconcile(logs))


@pytest.mark.parametrize("undated", ["first", "last", "behind"])
@pytest.mark.parametrize("joined", [False, True])
def test_lines_sorted_by_time_never_give_wrong_sums_silently(tmp_path: Path, joined: bool, undated: str) -> None:
    """LOG-35: each recording, also in one file; without a step of the clock, most sums are right."""
    right: list[str] = []
    for record in RECORDINGS:
        paths = sorted((TRANSCRIPTS / record).rglob("*.jsonl"))
        files = [path.read_text("utf-8").splitlines(keepends=True) for path in paths]
        for number, lines in enumerate([[*chain.from_iterable(files)]] if joined else files):
            (tmp_path / f"{number}.jsonl").write_text("".join(sorted_by_time(lines, undated)), "utf-8")
        assert counted_or_told(tmp_path, TRANSCRIPTS / record), record
        right += [record] if sums(read_logs(tmp_path)) == served(TRANSCRIPTS / record) else []
        for path in tmp_path.iterdir():
            path.unlink()

    assert len(right) >= 20


@settings(max_examples=60)
@given(
    st.sampled_from(["casebook/resume", "casebook/compaction", "workflow", "clock/in_a_resumed_session_0"]),
    st.sampled_from([1, 10, 3600]),
    st.integers(-HOUR, 8 * HOUR),
    st.floats(0, 1),
    st.sampled_from(["first", "last", "behind"]),
    st.booleans(),
)
@example("workflow", 10, -4, 0.49, "behind", False)
@example("casebook/resume", 3600, -1804, 0.88, "behind", False)
def test_lines_sorted_after_any_step_never_give_wrong_sums_silently(
    tmp_path_factory: pytest.TempPathFactory, name: str, slower: int, step: int, part: float, undated: str, joined: bool
) -> None:
    """LOG-35: also in sessions that took longer than the step."""
    source, target = TRANSCRIPTS / name, tmp_path_factory.mktemp("sorted")
    files = [list(map(json.loads, path.read_text("utf-8").splitlines())) for path in sorted(source.rglob("*.jsonl"))]
    slowed = [[slower_line(line, slower) for line in lines] for lines in files]
    times = [_moment(line["timestamp"]) for lines in slowed for line in lines if "timestamp" in line]
    at = min(times) - 1 + part * (max(times) - min(times) + 1)
    texts = [[f"{json.dumps(line)}\n" for line in with_step(lines, (0, 0), at, step)] for lines in slowed]
    for number, lines in enumerate([[*chain.from_iterable(texts)]] if joined else texts):
        (target / f"{number}.jsonl").write_text("".join(sorted_by_time(lines, undated)), "utf-8")

    assert counted_or_told(target, source)


def slower_line(line: dict[str, Any], times: int) -> dict[str, Any]:
    """Return a line of a session that took longer; `START` is before all recordings."""
    line = {**line}
    if "timestamp" in line:
        time = datetime.fromtimestamp(START + (_moment(line["timestamp"]) - START) * times, UTC)
        line["timestamp"] = time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    elif line["type"] == "cost-state":
        line["totalDuration"] *= times
        line["startTime"] = round(1000 * START + (line["startTime"] - 1000 * START) * times)
    return line


# --- older copies


def test_a_clock_that_is_ahead_hides_no_block(run: Any, maker: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """LOG-62: in the blocks' report, in `watch` with its alerts, and in the status line."""
    now = datetime.now(UTC)
    log = maker("s1")
    for moment in (now - timedelta(minutes=4), now - timedelta(minutes=2), now + timedelta(days=30)):
        usage = {"input_tokens": 1_000_000, "output_tokens": 0}
        log.answer(usage=usage, timestamp=moment.isoformat())
    log.write(tmp_path / "claude" / "projects" / "p" / "s1.jsonl")

    blocks = run("report", "block", "--format", "json")
    watch = run("watch", "--once", "--alert", "block>$3")
    with open(os.devnull, encoding="utf-8") as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        line = run("statusline")

    assert [one["requests"] for one in blocks.json["lines"] if one["kind"] == "active"] == [2]
    assert watch.code == 1
    assert "ALERT block" in watch.out
    assert all("1 requests have times in the future" in text for text in (blocks.err, watch.out, line.err))
    # The block begins with the hour of a request up to four minutes ago.
    assert re.search(r"block \$4\.00, (3h5[5-9]|[45]h)", line.out)
