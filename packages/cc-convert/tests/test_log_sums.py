"""Every request once, and every total in full."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.logs import Logs, Row, read_logs, read_messages
from cc_convert.reconcile import reconcile

Maker: TypeAlias = Callable[..., Any]
ONE = (100, 20, 1000, 200, 100)
TWICE = (200, 40, 2000, 400, 200)
PRICE = (100 * 2 + 20 * 10 + 1000 * 0.2 + 200 * 2.5 + 100 * 4) / 1e6


def total(rows: Iterable[Row]) -> tuple[int, ...]:
    return tuple(sum(column) for column in zip(*(row[9:14] for row in rows), strict=True))


def by_session(logs: Logs) -> dict[str, tuple[int, ...]]:
    names = sorted({row.session for row in logs.rows})
    return {name: total(row for row in logs.rows if row.session == name) for name in names}


def agree(logs: Logs) -> bool:
    return all(one.agrees for one in reconcile(logs))


Read: TypeAlias = Callable[..., Logs]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write logs, each as a session's file, and read them."""

    def reading(*logs: Any) -> Logs:
        return read_logs(*(log.write(tmp_path / f"{number}-{log.session}.jsonl") for number, log in enumerate(logs)))

    return reading


def state(log: Any, requests: int, factor: float = 1) -> None:
    """Return the CLI's total for a number of requests."""
    log.state({"claude-sonnet-5": (*(requests * one for one in ONE), requests * PRICE * factor)})


# --- every request once


def test_the_blocks_of_an_answer_are_one_request(log: Any, read: Read) -> None:
    """LOG-20, LOG-03"""
    log.answer("msg_1")
    log.answer("msg_1", content=[{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}])
    log.answer("msg_1", content=[{"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {}}])

    [row] = read(log).rows

    assert (row[9:14], row.tools) == (ONE, ("Read", "Bash"))
    assert (row.session, row.project, row.model) == ("s1", "/home/user/p", "claude-sonnet-5")
    assert row.request_id == "req_msg_1"


def test_the_fullest_record_counts(log: Any, read: Read) -> None:
    """LOG-20: old versions wrote the start's counts with the first blocks.

    Seen elsewhere: the first line counts, or the same message counts twice.
    """
    for number, output in enumerate((1, 861, 20)):
        log.answer("msg_1", usage=log.usage(output_tokens=output), requestId="req_1" if number else ...)

    assert [row[9:14] for row in read(log).rows] == [(100, 861, *ONE[2:])]


def test_the_same_session_in_two_folders_counts_once(log: Any, tmp_path: Path) -> None:
    """LOG-20"""
    log.answer()
    log.write(tmp_path / "a" / "s1.jsonl")
    log.write(tmp_path / "backup" / "s1.jsonl")

    assert total(read_logs(tmp_path).rows) == ONE


def test_a_transcript_and_the_stream_of_its_turn_count_once(maker: Maker, tmp_path: Path) -> None:
    """LOG-20, LOG-22"""
    log, stream = maker(), maker()
    log.answers("msg_1", "msg_2")
    state(log, 2)
    stream.stream("msg_1")
    stream.stream("msg_2")
    stream.result("r1", (*TWICE, 2 * PRICE), (*TWICE, 2 * PRICE))

    logs = read_logs(log.write(tmp_path / "s1.jsonl"), stream.write(tmp_path / "turn.out"))
    assert total(logs.rows) == TWICE
    assert [row.kind for row in logs.rows] == ["request", "request"]


def test_a_sub_agents_file_belongs_to_its_session(maker: Maker, tmp_path: Path) -> None:
    """LOG-20, LOG-24: the requests are in the session's total, and are not missing there."""
    log, agent = maker(), maker(start="2026-11-20T10:01:30+00:00")
    log.answer("msg_1", content=[{"type": "tool_use", "id": "toolu_1", "name": "Agent", "input": {}}])
    agent.answer("msg_2", isSidechain=True, agentId="a1", attributionAgent="Explore")
    result = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}]
    log.user(result, toolUseResult={"usage": log.usage(), "totalTokens": 1420})
    log.answer("msg_3")
    state(log, 3)
    log.write(tmp_path / "s1.jsonl")
    agent.write(tmp_path / "s1" / "subagents" / "agent-a1.jsonl")

    logs = read_logs(tmp_path)

    assert by_session(logs) == {"s1": (300, 60, 3000, 600, 300)}
    assert [(row.agent, row.agent_type) for row in logs.rows] == [("", ""), ("a1", "Explore"), ("", "")]
    assert agree(logs)


# --- forks and resumes


def fork_of(maker: Maker, parent: Any, session: str, *, marked: bool = True) -> Any:
    """Write a fork that begins with copies of all answers in the parent."""
    fork = maker(session, start="2026-11-20T12:00:00+00:00")
    for line in parent.lines:
        if line["type"] == "assistant":
            origin = line.get("requestSessionId", line["sessionId"])
            more = {"requestSessionId": origin} if marked else {}
            fork.lines.append(line | {"sessionId": session} | more)
    return fork


@pytest.mark.parametrize("requests", [2, 1], ids=["requests", "a compaction"])
def test_a_fork_does_not_count_what_its_parent_spent(maker: Maker, read: Read, requests: int) -> None:
    """LOG-20, LOG-23, LOG-26: the parent's compaction is in the total alone."""
    parent = maker("parent")
    parent.answers(*(f"msg_{number}" for number in range(requests)))
    state(parent, 2)
    fork = fork_of(maker, parent, "fork")
    fork.answer("msg_3")
    state(fork, 3)

    logs = read(parent, fork)

    assert by_session(logs) == {"fork": ONE, "parent": TWICE}
    assert [row.parent for row in logs.rows if row.kind == "request"] == [*[""] * requests, "parent"]
    unlogged = [("parent", "unlogged")] * (2 - requests)
    assert [(row.session, row.kind) for row in logs.rows if row.kind != "request"] == unlogged
    assert agree(logs)


@pytest.mark.parametrize("marked", [True, False], ids=["its parent was deleted", "of an old version"])
def test_a_fork_without_a_parent_or_a_mark_counts_all_once(maker: Maker, read: Read, marked: bool) -> None:
    """LOG-20, LOG-23: old versions did not mark copies."""
    parent = maker("parent")
    parent.answer("msg_1")
    fork = fork_of(maker, parent, "fork", marked=marked)
    fork.answer("msg_2")
    if marked:
        state(fork, 2)
        assert by_session(read(fork)) == {"fork": ONE, "parent": ONE}
    else:
        assert total(read(parent, fork).rows) == TWICE


# --- the CLI's own totals


def test_what_is_in_the_total_alone_is_a_row_of_its_own(log: Any, read: Read) -> None:
    """LOG-26: with the time of the run in which it was spent, and the region that determines the price.

    Seen elsewhere: a compaction's cost is in no sum.
    """
    log.answer("msg_1", usage=log.usage(inference_geo="us"))
    state(log, 2, 1.1)
    log.answer("msg_2", usage=log.usage(inference_geo="us"))
    state(log, 3, 1.1)

    logs = read(log)

    assert [(row[9:14], row.geo) for row in logs.rows if row.kind == "unlogged"] == [(ONE, "us")]
    last = logs.rows[-1].time
    assert last is not None
    assert sorted(row.time for row in logs.rows if row.time is not None)[1] < last
    assert sum(row.cost or 0 for row in logs.priced()) == pytest.approx(3 * PRICE * 1.1)
    assert agree(logs)


def test_what_came_after_the_last_total_counts_too(log: Any, read: Read) -> None:
    """LOG-26: the session is still running."""
    log.answer("msg_1")
    state(log, 2)
    log.answer("msg_2")

    assert total(read(log).rows) == (300, 60, 3000, 600, 300)


def test_a_model_under_its_long_name_in_the_total_is_the_same(log: Any, read: Read) -> None:
    """LOG-26"""
    log.answer(model="claude-sonnet-4-5-20250929")
    log.state({"claude-sonnet-4-5[1m]": (*ONE, 0.0)})

    assert total(read(log).rows) == ONE


def test_usage_that_a_turn_does_not_split_is_a_separate_row(log: Any, read: Read) -> None:
    """LOG-22"""
    log.stream("msg_1")
    log.stream("msg_2")
    log.result("r1", (*TWICE, 2 * PRICE), (*TWICE, 2 * PRICE))

    logs = read(log)

    assert total(logs.rows) == TWICE
    assert [(row.kind, row.output) for row in logs.rows] == [("request", 1), ("request", 1), ("unlogged", 38)]


def test_the_exact_differences_of_a_stream_are_used(log: Any, read: Read) -> None:
    """LOG-23: a resumed session; this log has only the second turn."""
    log.stream("msg_2")
    log.result("r2", (*TWICE, 2 * PRICE), (*ONE, PRICE))

    logs = read(log)

    assert total(logs.rows) == ONE
    assert agree(logs)


def test_a_result_that_is_told_twice_counts_once(log: Any, read: Read) -> None:
    """LOG-20"""
    log.result("r1", (*ONE, PRICE), (*ONE, PRICE))

    assert total(read(log, log).rows) == ONE


def test_growing_totals_are_turned_into_differences(maker: Maker, read: Read) -> None:
    """LOG-23: results printed as JSON, one file for each turn in a session. Seen elsewhere: they are not read."""
    logs = [maker() for _ in range(3)]
    for log, number in zip(logs, (2, 1, 3), strict=True):
        log.result(f"r{number}", (100 * number, 20 * number, 0, 0, 0, 0.1 * number))

    assert [(row.kind, row.input, row.output) for row in read(*logs).rows] == [("turn", 100, 20)] * 3


def test_an_error_costs_nothing_and_is_counted(log: Any, read: Read) -> None:
    """LOG-25"""
    log.answer(model="<synthetic>", usage=log.usage(input_tokens=0, speed=None), isApiErrorMessage=True)
    log.answer(model="<synthetic>", usage=log.usage(), isApiErrorMessage=True)
    log.answer()

    rows = read(log).priced()

    assert [row.kind for row in rows] == ["error", "error", "request"]
    assert [row.cost for row in rows] == [0, 0, pytest.approx(PRICE)]


def test_messages_of_the_sdk_are_read_like_a_stream(log: Any, as_object: Callable[..., object]) -> None:
    """LOG-01: they have no exact differences, so the totals' differences are used."""
    log.stream("msg_1")
    log.result("r1", (*ONE, PRICE))
    log.stream("msg_2")
    log.result("r2", (*TWICE, 2 * PRICE))

    logs = read_messages(as_object(line) for line in log.lines)

    assert total(logs.rows) == TWICE
    assert {row.session for row in logs.rows} <= {"s1", ""}


def test_a_difference_to_the_total_is_shown(log: Any, read: Read) -> None:
    """LOG-30"""
    log.answers("msg_1", "msg_2")
    log.state({"claude-sonnet-5": (*ONE, 0.5)})

    [compared] = reconcile(read(log))

    assert not compared.agrees
    assert compared.difference[:5] == ONE
    assert compared.difference.cost == pytest.approx(2 * PRICE - 0.5)
