"""Lines that must count. Other tools lose or miscount each of them."""

import gzip
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.log_files.scan import scan_stream
from cc_convert.logs import Logs, read_logs

ONE = (100, 20, 1000, 200, 100)
Read: TypeAlias = Callable[[bytes], Logs]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read bytes as a log."""

    def reading(content: bytes) -> Logs:
        path = tmp_path / "log.jsonl"
        path.write_bytes(content)
        return read_logs(path)

    return reading


def counts(logs: Logs) -> list[tuple[int, ...]]:
    return [row[9:14] for row in logs.rows]


@pytest.mark.parametrize(
    "value",
    [
        {"id": None},
        {"model": None, "requestId": None, "version": None},
        {"deep": [{"deeper": {"id": None, "speed": None}}]},
        {"usage": {"input_tokens": 5}},
        {"message": {"usage": {"input_tokens": None}}},
    ],
    ids=["id", "several", "deep", "usage", "message"],
)
def test_what_stands_in_a_tools_input_costs_no_record(log: Any, read: Read, value: object) -> None:
    """LOG-10. Seen elsewhere: the record is lost where a tool's input has `"id": null` or `"model": null`."""
    log.answer("msg_1", content=[{"type": "tool_use", "id": "toolu_1", "name": "Write", "input": value}])
    log.answer("msg_2")

    logs = read(log.text())

    assert (counts(logs), logs.rows[0].tools, logs.problems) == ([ONE, ONE], ("Write",), [])


@pytest.mark.parametrize("speed", ["warp", None, 3, ["fast"]], ids=repr)
@pytest.mark.parametrize("content", ["text", None, [None, 3, "odd", {"type": None, "name": 4}], {}], ids=repr)
def test_an_unknown_speed_and_odd_content_cost_no_record(log: Any, read: Read, speed: object, content: object) -> None:
    """LOG-11, LOG-07. Seen elsewhere: the record is lost where the speed is unknown."""
    line = log.answer(usage=log.usage(speed=speed))
    line["message"]["content"] = content

    assert counts(read(log.text())) == [ONE]


def test_spaces_and_another_order_of_keys_cost_no_record(log: Any, read: Read) -> None:
    """LOG-12: in a file with usual lines. Seen elsewhere: JSON with spaces is not found."""
    spaced, turned = log.answer("msg_1"), log.answer("msg_2")
    around = dict(reversed(turned.items())) | {"message": dict(reversed(turned["message"].items()))}
    log.lines = [log.answer("msg_3"), around]

    logs = read(json.dumps(spaced).encode() + b"\n" + log.text())

    assert (counts(logs), logs.problems) == ([ONE, ONE, ONE], [])


@pytest.mark.parametrize(
    ("old", "new", "problems"),
    [
        (b'{"parentUuid"', b'\xef\xbb\xbf{"parentUuid"', []),
        (b'"isSidechain":false', b'"odd":' + b"9" * 10_000, ["a number that is too long"]),
        (b"Hello.", b"Hell\xff\xfe", ["invalid UTF-8"]),
        (b"Hello.", b"Hell\xc3", ["invalid UTF-8"]),
        (b"Hello.", b"Hell\\ud83d", ["half of a character"]),
        (b"Hello.", b"Hell\0", ["NUL bytes"]),
        (b'{"parentUuid"', b"\0" * 4096 + b'{"parentUuid"', ["NUL bytes"]),
    ],
    ids=["byte order mark", "endless number", "invalid", "cut", "surrogate", "NUL", "hole"],
)
def test_odd_and_damaged_text_is_read_and_damage_is_reported(
    log: Any, read: Read, old: bytes, new: bytes, problems: list[str]
) -> None:
    """LOG-04, LOG-13, LOG-14, LOG-15, LOG-57. Seen elsewhere: the record is lost without a report."""
    log.answers("msg_1", "msg_2")

    logs = read(log.text().replace(old, new, 1))

    assert counts(logs) == [ONE, ONE]
    assert [(problem.reason, problem.offset, problem.lost) for problem in logs.problems] == [
        (reason, 0, False) for reason in problems
    ]


@pytest.mark.parametrize(
    ("timestamp", "time"),
    [
        ("2026-11-20T10:00:00Z", 1795168800),
        ("2026-11-20T10:00:00.123456Z", 1795168800),
        ("2026-11-20T12:00:00.123+02:00", 1795168800),
        (1795168800123, 1795168800),
        (1795168800, 1795168800),
        ("yesterday", None),
        (..., None),
    ],
)
def test_times_in_any_precision_are_read_and_may_be_missing(
    log: Any, read: Read, timestamp: object, time: float | None
) -> None:
    """LOG-16. Seen elsewhere: records with microseconds are lost."""
    log.answer(timestamp=timestamp)

    [row] = read(log.text()).rows

    assert (row.time, row[9:14]) == (time and pytest.approx(time, abs=1), ONE)


def test_the_first_time_of_a_log_is_read_in_any_length(log: Any) -> None:
    """LOG-16"""
    log.user(timestamp="2026-11-20T10:00:00Z")

    assert scan_stream(BytesIO(log.text()), "log.jsonl").began == "2026-11-20T10:00:00Z"


def test_windows_line_ends_and_long_lines_cost_no_record(log: Any, read: Read) -> None:
    """LOG-17"""
    log.answer("msg_1")
    log.answer("msg_2", content=[{"type": "text", "text": "x" * 5_000_000}])
    log.user([{"type": "tool_result", "tool_use_id": "t", "content": "y" * 5_000_000}])
    log.answer("msg_3")

    logs = read(log.text().replace(b"\n", b"\r\n"))

    assert (counts(logs), logs.problems) == ([ONE] * 3, [])


def test_a_tool_result_that_is_a_list_hides_no_session(log: Any, read: Read) -> None:
    """LOG-18. Seen elsewhere: no session in new logs is found."""
    log.user([{"type": "tool_result", "tool_use_id": "t", "content": []}], toolUseResult=[{"type": "text"}])
    log.answer()

    assert [(row.session, row.project) for row in read(log.text()).rows] == [("s1", "/home/user/p")]


def test_without_ids_the_next_best_takes_their_place(log: Any, read: Read) -> None:
    """LOG-19: the last resort is the record's position. Seen elsewhere: without both ids every block is a request."""
    for uuid in ("u", "v"):
        # Two blocks in an answer without a request id, then a block with neither id, and a block without any name.
        log.answer("msg_1", requestId=...)
        for more in ({}, {"requestId": ..., "uuid": uuid}, {"requestId": ..., "uuid": ...}):
            line = log.answer("msg_2", **more)
            del line["message"]["id"]

    logs = read(log.text())

    named = [row.key for row in logs.rows if row.key in ("msg_1", "req_msg_2", "u", "v")]
    assert sorted(named) == ["msg_1", "req_msg_2", "u", "v"]
    assert counts(logs) == [ONE] * 6
    assert [problem.lost for problem in logs.problems] == [False, False]


@pytest.mark.parametrize(
    ("value", "count"),
    [(12.0, 12), (True, 1), ("12", 0), (-5, 0), (10**400, 0), (10**30, 0), ([1], 0)],
    ids=["float", "bool", "text", "negative", "endless", "huge", "list"],
)
def test_what_is_no_count_is_named(log: Any, read: Read, value: object, count: int) -> None:
    """LOG-04, LOG-57: the record's other counts count. Seen elsewhere: the record is lost."""
    log.answer(usage=log.usage(input_tokens=value))

    logs = read(log.text())

    assert counts(logs) == [(count, *ONE[1:])]
    assert (logs.problems != []) == (value not in (12.0, True))


def test_new_kinds_of_record_disturb_nothing(log: Any, read: Read) -> None:
    """LOG-07"""
    log.lines.append({"type": "of-next-year", "usage": {"input_tokens": 5}, "message": {"usage": {"input_tokens": 5}}})
    log.answer(usage=log.usage(of_next_year={"tokens": 5}), of_next_year=[1])
    log.lines.append({"type": ["a", "list"], "message": 3})

    assert counts(read(log.text())) == [ONE]


def test_a_line_that_is_cut_off_is_reported_with_its_place(log: Any, read: Read) -> None:
    """LOG-04"""
    log.answers("msg_1", "msg_2")
    first, second = log.text().splitlines(keepends=True)

    logs = read(first[:200] + b"\n" + b"not JSON\n" + second)

    assert counts(logs) == [ONE]
    assert [(problem.offset, problem.lost) for problem in logs.problems] == [(0, True), (201, True)]


@pytest.mark.parametrize("cut", ["answer", "prompt", "result", "state"])
@pytest.mark.parametrize("rest", [30, 200])
def test_what_stands_behind_a_line_that_was_cut_off_counts(log: Any, read: Read, cut: str, rest: int) -> None:
    """LOG-04: a writer was killed, and the next writer went on behind it. The counts are the same in both answers.

    Seen elsewhere: both records are lost without a report.
    """
    log.answer("msg_0")
    match cut:
        case "answer":
            log.answer("msg_1")
        case "prompt":
            log.user("What is the weather like in Paris, and is it going to rain there tomorrow? " * 9)
        case "result":
            log.user([{"type": "tool_result", "tool_use_id": "t", "content": "x" * 9000}])
        case _:
            log.state({"claude-sonnet-5": (*ONE, 0.5)})
    log.answer("msg_2")
    first, second, third = log.text().splitlines(keepends=True)

    logs = read(first + second[: len(second) - rest if cut == "result" else rest] + third)

    assert [row.key for row in logs.rows] == ["msg_0", "msg_2"]
    assert [problem.lost for problem in logs.problems] == [True]


def test_a_packed_log_is_read(log: Any, read: Read) -> None:
    """LOG-02: also when it was cut off. Seen elsewhere: packed logs are skipped."""
    log.answers(*(f"msg_{number}" for number in range(2000)))
    packed = gzip.compress(log.text())

    assert len(read(packed).rows) == 2000
    cut = read(packed[: len(packed) // 2])
    assert 0 < len(cut.rows) < 2000
    assert [problem.lost for problem in cut.problems] == [True]


@pytest.mark.parametrize("strict", [False, True])
def test_a_subagent_in_progress_records_counts(maker: Any, tmp_path: Path, strict: bool) -> None:
    """LOG-24: in each block once, and once beside the sub-agent's own file; usage in unknown records is told."""
    log, agent = maker(), maker()
    line = log.answer("msg_1")
    for _ in range(2):
        line = agent.answer("msg_2", agentId="a1", uuid="u2")
        inner = {name: line[name] for name in ("type", "message", "requestId", "uuid", "timestamp")}
        progress = {"type": "agent_progress", "agentId": "a1", "message": inner}
        common = {"sessionId": "s1", "cwd": "/w", "uuid": f"p{len(log.lines)}", "timestamp": log.time()}
        log.lines.append({"parentUuid": "p", "type": "progress", "data": progress, **common})
        log.lines.append({"type": "progress", "data": progress, **common})
    log.lines.append({"type": "novelty", "message": line["message"], "sessionId": "s1"})
    path = log.write()

    logs = read_logs(path, strict=strict)

    assert [(row.key, row.agent, row.session, row.input) for row in logs.rows] == [
        ("msg_1", "", "s1", 100), ("msg_2", "a1", "s1", 100)
    ]  # fmt: skip
    assert [problem.reason for problem in logs.lost] == ["usage in a record of the unknown type 'novelty'"]
    own = agent.write(tmp_path / "s1" / "subagents" / "agent-a1.jsonl")
    own.with_suffix(".meta.json").write_text(json.dumps({"agentType": "explorer"}), "utf-8")
    assert {row.key: row.agent_type for row in read_logs(path, own, strict=strict).rows} == {
        "msg_1": "", "msg_2": "explorer"
    }  # fmt: skip
