"""Lines that must count. Each was seen to be lost or miscounted by a tool in use."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.logs import Logs, read_logs

Maker: TypeAlias = Callable[..., Any]
ONE = (100, 20, 1000, 200, 100)


@pytest.fixture
def read(tmp_path: Path) -> Callable[[bytes], Logs]:
    """Reads bytes as a log."""

    def reading(content: bytes) -> Logs:
        path = tmp_path / "log.jsonl"
        path.write_bytes(content)
        return read_logs(path)

    return reading


Read: TypeAlias = Callable[[bytes], Logs]


def counts(logs: Logs) -> list[tuple[int, ...]]:
    return [row[9:14] for row in logs.rows]


def with_input(maker: Maker, value: object) -> bytes:
    """An answer that calls a tool with this argument, and then one without."""
    log = maker()
    call = {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": value}
    log.answer("msg_1", content=[call])
    log.answer("msg_2")
    return log.text()


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
def test_what_stands_in_a_tools_input_costs_no_record(maker: Maker, read: Read, value: object) -> None:
    """LOG-10. Seen elsewhere: the record is lost where a tool's input has `"id": null` or `"model": null`."""
    logs = read(with_input(maker, value))

    assert counts(logs) == [ONE, ONE]
    assert logs.rows[0].tools == ("Write",)
    assert logs.problems == []


@pytest.mark.parametrize("speed", ["warp", None, 3, ["fast"]], ids=repr)
@pytest.mark.parametrize("content", ["text", None, [None, 3, "odd", {"type": None, "name": 4}], {}], ids=repr)
def test_an_unknown_speed_and_odd_content_cost_no_record(
    maker: Maker, read: Read, speed: object, content: object
) -> None:
    """LOG-11, LOG-07. Seen elsewhere: the record is lost where the speed is unknown."""
    log = maker()
    line = log.answer(usage=log.usage(speed=speed))
    line["message"]["content"] = content

    assert counts(read(log.text())) == [ONE]


def test_spaces_and_another_order_of_keys_cost_no_record(maker: Maker, read: Read) -> None:
    """LOG-12: in one file with lines as usual. Seen elsewhere: JSON with spaces is not found."""
    log = maker()
    usual, spaced, turned = log.answer("msg_1"), log.answer("msg_2"), log.answer("msg_3")
    around: dict[str, object] = dict(reversed([(name, value) for name, value in turned.items()]))
    around["message"] = dict(reversed(list(turned["message"].items())))
    lines = [
        json.dumps(usual, separators=(",", ":")),
        json.dumps(spaced, indent=None, separators=(", ", ": ")),
        json.dumps(around, separators=(",", ":")),
    ]

    logs = read("\n".join(lines).encode() + b"\n")

    assert counts(logs) == [ONE, ONE, ONE]
    assert logs.problems == []


def test_a_byte_order_mark_and_a_number_that_python_would_not_read_cost_no_record(maker: Maker, read: Read) -> None:
    """LOG-13, LOG-57. Seen elsewhere: the first record is lost."""
    log = maker()
    log.answer()

    logs = read(b"\xef\xbb\xbf" + log.text())

    assert (counts(logs), logs.problems) == ([ONE], [])
    assert counts(read(log.text().replace(b'"isSidechain":false', b'"odd":' + b"9" * 10_000))) == [ONE]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"Hello.", b"Hell\xff\xfe", "invalid UTF-8"),
        (b"Hello.", b"Hell\xc3", "invalid UTF-8"),
        (b"Hello.", b"Hell\\ud83d", "half of a character"),
        (b"Hello.", b"Hell\0", "NUL bytes"),
        (b'{"parentUuid"', b"\0" * 4096 + b'{"parentUuid"', "NUL bytes"),
    ],
    ids=["invalid", "cut", "surrogate", "NUL", "hole"],
)
def test_damaged_text_is_read_and_reported(maker: Maker, read: Read, old: bytes, new: bytes, reason: str) -> None:
    """LOG-14, LOG-15, LOG-04. Seen elsewhere: the record is lost, and nothing is said."""
    log = maker()
    log.answer("msg_1")
    log.answer("msg_2")

    logs = read(log.text().replace(old, new, 1))

    assert counts(logs) == [ONE, ONE]
    assert [(problem.reason, problem.offset, problem.lost) for problem in logs.problems] == [(reason, 0, False)]


@pytest.mark.parametrize(
    "timestamp",
    ["2026-11-20T10:00:00Z", "2026-11-20T10:00:00.123456Z", "2026-11-20T12:00:00.123+02:00", 1795168800123, 1795168800],
)
def test_a_time_of_any_precision_is_read(maker: Maker, read: Read, timestamp: object) -> None:
    """LOG-16. Seen elsewhere: records with microseconds are lost."""
    log = maker()
    log.answer(timestamp=timestamp)

    [row] = read(log.text()).rows

    assert row.time == pytest.approx(1795168800, abs=1)
    assert row[9:14] == ONE


def test_a_record_without_a_time_counts(maker: Maker, read: Read) -> None:
    log = maker()
    log.answer(timestamp="yesterday")
    log.answer(timestamp=...)

    logs = read(log.text())

    assert (counts(logs), [row.time for row in logs.rows]) == ([ONE, ONE], [None, None])


def test_windows_line_ends_and_long_lines_cost_no_record(maker: Maker, read: Read) -> None:
    """LOG-17"""
    log = maker()
    log.answer("msg_1")
    log.answer("msg_2", content=[{"type": "text", "text": "x" * 5_000_000}])
    log.user([{"type": "tool_result", "tool_use_id": "t", "content": "y" * 5_000_000}])
    log.answer("msg_3")

    logs = read(log.text().replace(b"\n", b"\r\n"))

    assert (counts(logs), logs.problems) == ([ONE] * 3, [])


def test_a_tool_result_that_is_a_list_hides_no_session(maker: Maker, read: Read) -> None:
    """LOG-18. Seen elsewhere: of all new logs no session is found."""
    log = maker()
    log.user([{"type": "tool_result", "tool_use_id": "t", "content": []}], toolUseResult=[{"type": "text"}])
    log.answer()

    logs = read(log.text())

    assert [(row.session, row.project) for row in logs.rows] == [("s1", "/home/user/p")]


def test_without_ids_the_next_best_takes_their_place(maker: Maker, read: Read) -> None:
    """LOG-19. Seen elsewhere: without both ids every block counts as a request."""
    log = maker()
    for number in range(2):
        # Two blocks of an answer without the id of its request, then one with neither id.
        log.answer("msg_1", requestId=...)
        by_request = log.answer("msg_2")
        del by_request["message"]["id"]
        by_record = log.answer("msg_3", requestId=..., uuid="u" if number else "v")
        del by_record["message"]["id"]

    assert sorted(row.key for row in read(log.text()).rows) == ["msg_1", "req_msg_2", "u", "v"]


def test_a_request_that_nothing_names_counts(maker: Maker, read: Read) -> None:
    """LOG-19: its place names it."""
    log = maker()
    for _ in range(2):
        line = log.answer(requestId=..., uuid=...)
        del line["message"]["id"]

    logs = read(log.text())

    assert counts(logs) == [ONE, ONE]
    assert [problem.lost for problem in logs.problems] == [False, False]


@pytest.mark.parametrize(
    ("value", "count"),
    [(12.0, 12), (True, 1), ("12", 0), (-5, 0), (10**400, 0), (10**30, 0), ([1], 0)],
    ids=["float", "bool", "text", "negative", "endless", "huge", "list"],
)
def test_what_is_no_count_is_named(maker: Maker, read: Read, value: object, count: int) -> None:
    """LOG-04, LOG-57: the other counts of the record count. Seen elsewhere: the record is lost."""
    log = maker()
    log.answer(usage=log.usage(input_tokens=value))

    logs = read(log.text())

    assert counts(logs) == [(count, *ONE[1:])]
    assert (logs.problems != []) == (value not in (12.0, True))


def test_new_kinds_of_record_disturb_nothing(maker: Maker, read: Read) -> None:
    """LOG-07"""
    log = maker()
    log.lines.append({"type": "of-next-year", "usage": {"input_tokens": 5}, "message": {"usage": {"input_tokens": 5}}})
    log.answer(usage=log.usage(of_next_year={"tokens": 5}), of_next_year=[1])
    log.lines.append({"type": ["a", "list"], "message": 3})

    assert counts(read(log.text())) == [ONE]


def test_a_line_that_is_cut_off_is_reported_with_its_place(maker: Maker, read: Read) -> None:
    """LOG-04"""
    log = maker()
    log.answer("msg_1")
    log.answer("msg_2")
    first, second = log.text().splitlines(keepends=True)

    logs = read(first[:200] + b"\n" + b"not JSON\n" + second)

    assert counts(logs) == [ONE]
    assert [(problem.offset, problem.lost) for problem in logs.problems] == [(0, True), (201, True)]


@pytest.mark.parametrize("cut", ["answer", "prompt", "result", "state"])
@pytest.mark.parametrize("rest", [30, 200])
def test_what_stands_behind_a_line_that_was_cut_off_counts(
    maker: Maker, tmp_path: Path, read: Read, cut: str, rest: int
) -> None:
    """LOG-04: a writer was killed, and the next one went on behind it. The counts are the same in both answers.

    Seen elsewhere: both records are lost, and nothing is said.
    """
    log = maker()
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


def test_a_packed_log_is_read(maker: Maker, read: Read, tmp_path: Path) -> None:
    """LOG-02: also when it was cut off. Seen elsewhere: packed logs are passed over."""
    log = maker()
    for number in range(2000):
        log.answer(f"msg_{number}")
    packed = gzip.compress(log.text())

    assert len(read(packed).rows) == 2000
    cut = read(packed[: len(packed) // 2])
    assert 0 < len(cut.rows) < 2000
    assert [problem.lost for problem in cut.problems] == [True]
