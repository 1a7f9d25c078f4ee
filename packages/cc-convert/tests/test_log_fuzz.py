"""Logs with any bytes: no crash, no silent loss, no more memory than a line needs."""

import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cc_convert.cli import main
from cc_convert.log_files.archive import to_archive
from cc_convert.log_files.fields import COUNTS
from cc_convert.log_files.rows import FileScan, Row
from cc_convert.log_files.scan import LONGEST_LINE, scan_stream
from cc_convert.logs import merge

Maker: TypeAlias = Callable[..., Any]

LOGS = Path(__file__).parent / "logs"
ODD_TIMES = ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "2026-13-45T99:99:99Z"]
ODD = [*ODD_TIMES, "\ud800", "\x1b[2J\n|<script>", 10**40, 1e300, float("inf"), [None]]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=5,
)


def scan(content: bytes, *, strict: bool = False) -> FileScan:
    return scan_stream(io.BytesIO(content), "log.jsonl", strict=strict)


def intact(maker: Maker) -> list[bytes]:
    log = maker()
    for number in range(6):
        log.user("Hi")
        log.answer(f"msg_{number}")
    return log.text().splitlines(keepends=True)


@given(st.binary(max_size=3000))
def test_any_bytes_give_a_result(content: bytes) -> None:
    """LOG-57"""
    for strict in (False, True):
        merge([scan(content, strict=strict)]).priced()


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_of_bytes_that_are_no_log_every_line_is_reported(lines: list[bytes]) -> None:
    """LOG-04, LOG-57"""
    lines = [b"x" + line.replace(b"\n", b"").replace(b"\0", b"") for line in lines]

    result = scan(b"".join(line + b"\n" for line in lines))

    assert [problem.lost for problem in result.problems] == [True] * len(lines)


DAMAGE = [b"\0", b"\0" * 4096, b"\xff", b"{", b"]", b'"', b"\n", b"\\ud800", b"9" * 5000, b'{"a":' * 3000]


@st.composite
def damaged(draw: st.DrawFn, line: bytes) -> bytes:
    """Return a damaged line."""
    broken = bytearray(line)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(broken) - 1)))
        match draw(st.sampled_from(["change", "cut", "behead", "insert", "delete"])):
            case "change":
                broken[at : at + 1] = bytes([draw(st.integers(0, 255).filter(lambda one: one != 10))])
            case "cut":
                del broken[at:]
            case "behead":
                del broken[:at]
            case "insert":
                broken[at:at] = draw(st.sampled_from(DAMAGE))
            case _:
                del broken[at : at + draw(st.integers(1, 300))]
    return bytes(broken)


_NAMES = st.sampled_from(["x", "usage", "input_tokens", "iterations ", "id", "note", "cache"])
_UNKNOWN = st.recursive(
    st.none() | st.integers(0, 10**9) | st.sampled_from(['}"{', "{", "}", '"usage":{', "\\", "text " * 300]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def shuffled(draw: st.DrawFn, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields in any order, with unknown fields between them."""
    unknown = draw(st.dictionaries(st.sampled_from(["new", "Other", "later"]), _UNKNOWN, max_size=2))
    items = draw(st.permutations([*fields.items(), *unknown.items()]))
    return dict(items)


@st.composite
def blocks_of_answers(draw: st.DrawFn) -> list[bytes]:
    """Return the lines of a few answers, each with blocks whose counts may grow, in any form of writing."""
    lines: list[bytes] = []
    size = st.integers(0, 9) | st.integers(10**8, 10**11)
    for number in range(draw(st.integers(1, 2))):
        counts = {name: draw(size) for name in COUNTS if name != "output_tokens"}
        for output in sorted(draw(st.lists(size, min_size=1, max_size=3))):
            usage = draw(shuffled({**counts, "output_tokens": output, "service_tier": "standard"}))
            content = [{"type": "tool_use", "id": f"t{len(lines)}", "name": "Read", "input": draw(_UNKNOWN)}]
            content = draw(st.sampled_from([content, [{"type": "text", "text": "Hello. " * 200}]]))
            message = {"id": f"msg_{number}", "model": "claude-sonnet-5", "role": "assistant"}
            message = draw(shuffled(message | {"content": content, "usage": usage}))
            record = {"type": "assistant", "sessionId": "s", "requestId": f"req_{number}", "message": message}
            record = draw(shuffled(record | {"uuid": f"u{len(lines)}", "timestamp": "2026-11-20T10:00:00.000Z"}))
            separators = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
            lines.append(json.dumps(record, separators=separators).encode() + b"\n")
    return lines


@given(blocks_of_answers())
def test_the_fast_path_finds_the_counts_of_the_strict_one(lines: list[bytes]) -> None:
    """LOG-12, LOG-20: with fields of any size in any order, and unknown fields between them."""
    text = b"".join(lines)

    fast, strict = (scan(text, strict=strict) for strict in (False, True))

    assert [row[:17] for row in fast.rows] == [row[:17] for row in strict.rows]
    assert [row.tools for row in fast.rows] == [row.tools for row in strict.rows]


@given(st.data())
def test_damage_to_one_line_costs_no_other(maker: Maker, data: st.DataObject) -> None:
    """LOG-04, LOG-57: a lost line is reported."""
    lines = intact(maker)
    number = data.draw(st.integers(0, len(lines) - 1))
    lines[number] = data.draw(damaged(lines[number][:-1])) + b"\n"

    for strict in (False, True):
        result = scan(b"".join(lines), strict=strict)

        keys = {row.key for row in result.rows}
        assert {f"msg_{one // 2}" for one in range(1, len(lines), 2) if one != number} <= keys
        if number % 2 and f"msg_{number // 2}" not in keys and not _is_json(lines[number]):
            assert result.problems


def test_a_first_line_that_was_torn_costs_no_other(maker: Maker) -> None:
    """LOG-04: it looks like the start of an indented result."""
    first, *others = intact(maker)

    result = scan(first.replace(b'{"', b'{\n"\0', 1) + b"".join(others))

    assert len(result.rows) == 6
    assert result.problems


@pytest.mark.parametrize("name", ["tool_call", "structured_output"])
@given(data=st.data())
def test_no_damage_changes_a_sum_in_silence(name: str, data: st.DataObject) -> None:
    """LOG-04, LOG-57: in streams from the real CLI, on the fast path; a newline may be damaged, too."""
    lines = (LOGS / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    before = merge([scan(b"".join(lines))])
    number = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.sampled_from([b"\n", b""]))
    lines[number] = data.draw(damaged(lines[number][:-1])) + end

    after = merge([scan(b"".join(lines))])

    if [row[9:14] for row in after.rows] != [row[9:14] for row in before.rows] and not _is_json(lines[number]):
        assert after.problems or after.unfinished


def test_a_damaged_answer_is_told_also_if_little_shows_that_it_was_one() -> None:
    """LOG-57"""
    usage = b'"usage":{\0input_tokens":1,"output_tokens":2}'
    assert scan(b'{"type":"\0ssistant","message":{"content":"' + b"a" * 2000 + b'",' + usage + b"}}\n").problems
    assert scan(b'{"a":' * 3000 + b'assistant","uuid":"u"}\n').problems
    assert scan(b'{"type":"ut_tokens":100},"speed":"fast"}},"type":"assistant","uuid":"u"}\n').problems


def _is_json(line: bytes) -> bool:
    """Return whether a line still has content, even if changed: then it is not lost."""
    try:
        return not line.strip() or isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


@given(record=st.dictionaries(st.text(max_size=9), values, max_size=4), message=values, usage=values)
def test_any_record_gives_a_result(maker: Maker, record: dict[str, Any], message: Any, usage: Any) -> None:
    """LOG-57: also with any values in the relevant fields."""
    log = maker()
    line = log.answer("msg_1")
    line["message"]["usage"] = usage
    log.lines.append(line | {"message": message})
    log.lines += [record | {"type": kind, "modelUsage": usage, "event": message} for kind in ("result", "cost-state")]
    log.lines.append({"type": "stream_event", "event": message})
    log.lines.append({"type": "cc-convert-row", **record})
    log.answer("msg_2")

    for strict in (False, True):
        rows = merge([scan(log.text(), strict=strict)]).priced()
        assert any(row.key == "msg_2" and row.cost == pytest.approx(0.0015) for row in rows)


KINDS = ["answer", "block", "user", "stream", "state", "result", "progress", "note", "attachment", "other"]


@given(st.data())
def test_reading_line_by_line_finds_what_the_quick_way_finds(maker: Maker, data: st.DataObject) -> None:
    """LOG-57: the fast path skips lines, but none that counts."""
    log = maker()
    for number in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(KINDS))
        text = data.draw(st.text(max_size=40)) + data.draw(
            st.sampled_from(["", '"usage":{', '"type":"user"', "x" * 5000])
        )
        usage = log.usage(output_tokens=data.draw(st.integers(0, 1)))
        match kind:
            case "answer":
                log.answer(content=[{"type": "text", "text": text}], usage=usage)
            case "block":
                call = {"type": "tool_use", "id": f"t{number}", "name": text[:9], "input": {"usage": {"a": text}}}
                log.answer("msg_same", content=[call])
            case "user":
                log.user(text, toolUseResult={"usage": usage, "text": text})
            case "stream":
                message = {"id": f"msg_stream_{number}", "role": "assistant", "usage": log.usage(output_tokens=1)}
                event = {"type": "message_start", "message": message}
                log.lines.append({"type": "stream_event", "event": event, "session_id": "s1"})
                log.stream(f"msg_stream_{number}")
            case "state":
                log.state({"claude-sonnet-5": (9, 9, 9, 9, 9, 0.5)})
            case "result":
                log.result(f"r{number}", (9, 9, 9, 9, 9, 0.5), data.draw(st.sampled_from([None, (1, 1, 1, 1, 1, 0.1)])))
            case "progress":
                call = {"type": "tool_use", "id": f"t{number}", "name": "Bash"}
                inner = {"id": "msg_same", "usage": usage, "content": [call]}
                log.lines.append({"type": "progress", "message": inner, "data": {"message": inner}})
            case "note":
                log.lines.append({"type": "api-request", "params": {"max_tokens": 64000}, "sessionId": text})
            case "attachment":
                log.lines.append({"attachment": {"type": text, "usage": usage}, "type": "attachment"})
            case _:
                log.lines.append({"type": text, "usage": usage, "message": {"usage": usage}})
        # The text that shows a line's kind is at different positions.
        if kind != "note" or data.draw(st.booleans()):
            log.lines[-1] = {"parentUuid": "x" * data.draw(st.sampled_from([0, 0, 36, 250, 400])), **log.lines[-1]}

    quick, thorough = scan(log.text()), scan(log.text(), strict=True)

    assert quick.rows == thorough.rows
    assert quick.ledgers == thorough.ledgers


COMMANDS = [
    *(["report", by, "--format", form] for by in ("day", "block", "tool") for form in ("table", "csv", "html")),
    *(["convert", "--format", form] for form in ("jsonl", "csv", "md", "html")),
    ["report", "model", "--cost", "logged"], ["responses"], ["reconcile", "--all"], ["doctor"], ["watch", "--once"],
    ["sql", "select * from requests", "--format", "md"],
]  # fmt: skip


@given(st.data())
def test_no_command_crashes_on_a_damaged_log(data: st.DataObject) -> None:
    """LOG-57: all their output can be encoded."""
    lines = (LOGS / "structured_output.jsonl").read_bytes().splitlines(keepends=True)
    number = data.draw(st.integers(0, len(lines) - 1))
    record = json.loads(lines[number])
    for name in data.draw(st.lists(st.sampled_from(sorted(record)), max_size=3)):
        record[name] = data.draw(values | st.sampled_from(ODD))
    lines[number] = data.draw(st.just(json.dumps(record).encode()) | damaged(lines[number][:-1])) + b"\n"
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file, redirect_stdout(printed), redirect_stderr(io.StringIO()):
        file.write(b"".join(lines))
        file.flush()
        assert main([*data.draw(st.sampled_from(COMMANDS)), file.name]) in (0, 1)
        printed.flush()


@given(st.sampled_from(Row._fields), values | st.sampled_from([10**30, -1, 1e300, "error", [["a"]], [[1, 2, 3]]]))
def test_a_damaged_row_of_an_archive_is_reported_or_sound(maker: Maker, name: str, value: Any) -> None:
    """LOG-44, LOG-57"""
    log = maker()
    log.answer("msg_1")
    [row] = scan(log.text()).rows
    line = json.dumps({**json.loads(to_archive(row)), name: value}).encode() + b"\n"

    result = scan(line)

    assert len(result.rows) + len(result.problems) >= 1
    assert all(one.time is None or 0 < one.time < 1e12 for one in result.rows)
    assert json.loads(to_archive(merge([result]).priced()[0])) if result.rows else True


@pytest.mark.parametrize("depth", [100, 5000, 200_000])
def test_deep_nesting_costs_at_most_its_line(maker: Maker, depth: int) -> None:
    """LOG-57"""
    first, second, third, fourth, *_ = intact(maker)
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    lines = [first, second.replace(b'"Hello."', deep), third, fourth]

    result = scan(b"".join(lines))

    assert "msg_1" in {row.key for row in result.rows}
    assert "msg_0" in {row.key for row in result.rows} or result.problems


def read_alone(path: Path, longest_line: int = LONGEST_LINE) -> tuple[int, ...]:
    """Read a log in a new process; return the numbers of rows and lost lines, and the most memory in megabytes.

    The memory comes from /proc, and is 0 without it: a child's `ru_maxrss` begins with the size of its parent.
    """
    code = (
        "import sys; from pathlib import Path;"
        "from cc_convert.log_files import scan; from cc_convert.logs import read_logs;"
        "scan.LONGEST_LINE = int(sys.argv[2]); logs = read_logs(sys.argv[1]); status = Path('/proc/self/status');"
        "lines = status.read_text().splitlines() if status.exists() else ['VmHWM: 0 kB'];"
        "peak = dict(line.split(':') for line in lines)['VmHWM'];"
        "print(len(logs.rows), len(logs.lost), int(peak.split()[0]) // 1000)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path, str(longest_line)], capture_output=True, text=True, check=True
    )
    return tuple(map(int, done.stdout.split()))


def test_a_line_of_fifty_megabytes_is_read_within_bounds(log: Any, tmp_path: Path) -> None:
    """LOG-57, LOG-54: memory grows with the longest line, and not with the log."""
    log.answer("msg_1", content=[{"type": "text", "text": "x" * 50_000_000}])
    line = log.text()
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        file.write(line)
        file.writelines(line[:1000].replace(b"msg_1", b"msg_%d" % number) + b"\n" for number in range(3))
        file.write(line.replace(b"msg_1", b"msg_2"))

    rows, lost, megabytes = read_alone(path)

    assert (rows, lost) == (2, 3)
    # The line in a buffer, once more as bytes, and decoded: not all lines at once.
    assert megabytes < 220


def test_a_line_that_is_too_long_is_reported(log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOG-04, LOG-57"""
    monkeypatch.setattr("cc_convert.log_files.scan.LONGEST_LINE", 4_000_000)
    log.answer("msg_1")
    log.answer("msg_2", content=[{"type": "text", "text": "x" * 30_000_000}])
    log.answer("msg_3")

    result = scan(log.text())

    assert [row.key for row in result.rows] == ["msg_1", "msg_3"]
    assert [problem.lost for problem in result.problems] == [True]
    assert result.offset == len(log.text())


def test_a_log_that_never_ends_a_line_is_not_held_in_memory(tmp_path: Path) -> None:
    """LOG-57"""
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        file.truncate(300_000_000)

    rows, lost, megabytes = read_alone(path, longest_line=4_000_000)

    assert (rows, lost) == (0, 1)
    assert megabytes < 100
