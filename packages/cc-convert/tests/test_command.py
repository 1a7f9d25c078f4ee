"""The command `cc-convert`: reports, filters, findings, misuse."""

import csv
import gzip
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Maker: TypeAlias = Callable[..., Any]
Run: TypeAlias = Callable[..., Any]
LOGS = Path(__file__).parent / "logs"


@pytest.mark.parametrize("by", ["day", "week", "month", "session", "model", "project", "block", "tool"])
@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
def test_every_report_comes_in_every_form(run: Run, short_log: Path, by: str, form: str) -> None:
    """LOG-40, LOG-42"""
    done = run("report", by, short_log, "--format", form, "--tz", "UTC")

    assert (done.code, done.err) == (0, "")
    if form == "json":
        [first, *_] = done.json if by == "tool" else done.json["lines"]
        keys = {"day": "2026-11-20", "tool": "Read", "model": "claude-sonnet-5"}
        assert first["key"] == keys.get(by, first["key"])
    elif form == "csv":
        rows = list(csv.DictReader(io.StringIO(done.out)))
        assert rows and all(None not in row and None not in row.values() for row in rows)
    else:
        assert done.out.count("\n") >= 3


def test_the_sums_of_a_report(run: Run, short_log: Path) -> None:
    """LOG-26, LOG-42"""
    whole = run("report", "--format", "json", short_log).json["total"]

    assert (whole["requests"], whole["input"], whole["output"], whole["cache_write_1h"]) == (2, 300, 60, 300)
    assert (whole["cost"], whole["unlogged_cost"]) == (0.0045, 0.0015)


def test_filters_hold_for_every_report(run: Run, short_log: Path) -> None:
    """LOG-41"""

    def requests(*words: str) -> int:
        return run("report", "--format", "json", "--tz", "UTC", short_log, *words).json["total"]["requests"]

    assert requests("--until", "2026-11-20") == 1
    assert requests("--since", "2026-11-21T09:59:01") == 1
    assert requests("--since", "2026-11-22") == 0
    assert requests("--model", "opus") == 0
    assert requests("--project", "user/p", "--session", "s1") == 2


# The last line is empty: a command without words.
MISUSE = """report --since yesterday
report --tz Mars/Olympus
report --last 7
report --last 7d --since 2026-11-20
report --since 2026-11-20 --until 2026-11-19
report --prices nowhere.json
report --bogus
report --until 9999-12-31
report --jobs 0
watch --interval nan
watch --interval -1
report nowhere.jsonl
convert -o x.docx
convert -o - --format parquet
sql selec
nonsense
"""


@pytest.mark.parametrize("line", MISUSE.split("\n"))
def test_misuse_is_told_from_findings(run: Run, short_log: Path, line: str) -> None:
    """LOG-47"""
    words = line.split()

    done = run(*words, *([short_log] if len(words) > 1 else []))

    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    assert done.err


def test_lines_that_cannot_be_read_are_said(run: Run, short_log: Path) -> None:
    """LOG-04, LOG-47"""
    short_log.write_bytes(short_log.read_bytes() + b"broken\n" + b"{\xff}\n")

    doctor = run("doctor", short_log)

    for words in (["report"], ["report", "tool"], ["report", "--strict"], ["convert"], ["reconcile"]):
        done = run(*words, short_log)
        assert (done.code, done.out != "") == (1, True)
        assert "lines that could not be read: 2;" in done.err
        assert str(short_log) in done.err
    assert run("sql", "select 1", short_log).code == doctor.code == 1
    problems = [line.split()[1:3] for line in doctor.out.splitlines() if line.startswith(str(short_log))]
    assert problems == [["6", "lost"], ["7", "lost"]]


def test_a_healthy_log_has_no_findings(run: Run, short_log: Path) -> None:
    """LOG-46, LOG-30"""
    assert (run("doctor", short_log).code, run("reconcile", short_log).code) == (0, 0)


def test_a_difference_to_the_cli_s_total_is_a_finding(run: Run, log: Any) -> None:
    """LOG-30"""
    log.answer()
    log.state({"claude-sonnet-5": (100, 20, 1000, 200, 100, 9.0)})

    done = run("reconcile", "--format", "json", log.write())

    assert done.code == 1
    assert [(one["agrees"], one["cost_difference"]) for one in done.json] == [(False, -8.9985)]


def test_a_model_without_a_price_is_said(run: Run, log: Any) -> None:
    """LOG-29"""
    log.answer(model="claude-of-next-year\x1b[31m")
    path = log.write()

    done = run("report", path)

    assert "no price for 'claude-of-next-year" in done.err
    assert "$0.00*" in done.out
    assert run("report", "--format", "json", path).json["unpriced"] == {"claude-of-next-year\x1b[31m": 1420}
    assert run("doctor", path).code == 1


def test_no_log_moves_the_cursor_of_a_terminal(run: Run, maker: Maker) -> None:
    made = maker("s\x1b[2J\x07", project="/home/\x1b]0;title\x07")
    made.answer(model="\x1b[31mred")
    path = made.write()

    outputs = [run("report", by, path).out for by in ("session", "model", "project")]
    outputs += [run("doctor", path).out, run("reconcile", path).out]

    assert not any("\x1b" in out or "\x07" in out for out in outputs)


def test_no_log_puts_a_formula_into_a_spreadsheet(run: Run, maker: Maker) -> None:
    made = maker("=cmd()", project="@SUM(1)")
    made.answer()

    rows = list(csv.DictReader(io.StringIO(run("convert", "--format", "csv", made.write()).out)))

    assert (rows[0]["session"], rows[0]["project"]) == ("'=cmd()", "'@SUM(1)")


def test_a_report_that_misses_an_unreadable_log_is_not_cached(
    run: Run, short_log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-56. Nothing but the reason for the failure may have changed."""
    with monkeypatch.context() as patch:
        patch.setattr("cc_convert.log_files.files.open_log", failing(PermissionError(13, "Permission denied")))
        assert run("report", "--format", "json", short_log).code == 1
    done = run("report", "--format", "json", short_log)
    assert (done.code, len(done.json["lines"])) == (0, 2)


def failing(error: Exception) -> Callable[..., object]:
    def fail(*_: object) -> object:
        raise error

    return fail


def test_a_report_imports_no_models() -> None:
    """LOG-56: pydantic's models and everything heavy would take longer than the report."""
    code = "import sys; from cc_convert.cli import main; main(['report', sys.argv[1]]); print(*sys.modules)"

    # A coverage measurement would import more modules.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run([sys.executable, "-c", code, LOGS], capture_output=True, text=True, check=True, env=env)

    loaded = set(done.stdout.split())
    assert "cc_convert.log_files.scan" in loaded
    assert not {"pydantic.main", "asyncio", "rich.console", "duckdb", "sqlite3", "multiprocessing"} & loaded


@pytest.mark.parametrize(
    "words",
    [["report"], ["report", "tool"], ["convert", "--format", "md"], ["doctor"], ["responses"], ["watch", "--once"]],
)
@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_packed_log_is_no_crash(run: Run, tmp_path: Path, words: list[str], damage: str) -> None:
    """LOG-02, LOG-57: the unpackable part is used, the rest is reported."""
    packed = bytearray(gzip.compress((LOGS / "tool_call.jsonl").read_bytes()))
    if damage == "cut":
        del packed[-300:]
    else:
        packed[-300:-280] = b"\0" * 20
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(packed)

    done = run(*words, path)

    assert done.code in (0, 1)
    assert "damaged" in done.err + done.out or "could not be read" in done.err or words[0] == "watch"


def test_the_kind_of_a_report_may_stand_behind_its_sources(
    run: Run, short_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-40: a file named like a report is read."""
    monkeypatch.chdir(tmp_path)
    by_model = run("report", "model", short_log).out

    assert (
        run("report", short_log, "model").out == run("report", short_log, "--format", "table", "model").out == by_model
    )
    both = run("report", short_log, "model", "day")
    assert (both.code, "model, day" in both.err, "./day" in both.err) == (2, True, True)
    short_log.rename(tmp_path / "model")
    assert run("report", "day", "model").out == run("report", "./model").out != by_model


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_progress_is_shown_after_a_while_and_cleared(
    run: Run, log: Any, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cc_convert.cli.inputs._PATIENCE", patience)
    monkeypatch.setattr("cc_convert.cli.inputs._REDRAW", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    log.answer()
    progress = run("report", "--no-cache", log.write()).err
    assert progress == ("" if patience else "\rreading 100% of 0 MB \r\x1b[K")
