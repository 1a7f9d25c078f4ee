"""The command `cc-convert`, as a user and as a script meets it."""

import csv
import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.cli import main
from cc_types import CLIResponse

Maker: TypeAlias = Callable[..., Any]
LOGS = Path(__file__).parent / "logs"
COMMAND = [sys.executable, "-m", "cc_convert"]
# No command takes a second; a busy machine may need many.
PATIENCE = 40.0


class Outcome:
    """What a command did."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run: TypeAlias = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process."""

    def running(*words: object) -> Outcome:
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return running


@pytest.fixture
def log(maker: Maker, tmp_path: Path) -> Path:
    """Three requests on two days, one of them a compaction."""
    made = maker()
    made.user("What is <b>this</b>?")
    made.answer("msg_1", content=[{"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "x"}}])
    made.user([{"type": "tool_result", "tool_use_id": "t1", "content": "```\nfile\n```"}])
    made.answer("msg_2", timestamp="2026-11-21T10:00:00Z")
    made.state({"claude-sonnet-5": (300, 60, 3000, 600, 300, 0.0045)})
    return made.write(tmp_path / "log.jsonl")


@pytest.mark.parametrize("by", ["day", "week", "month", "session", "model", "project", "block", "tool"])
@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
def test_every_report_comes_in_every_form(run: Run, log: Path, by: str, form: str) -> None:
    """LOG-40, LOG-42"""
    done = run("report", by, log, "--format", form, "--tz", "UTC")

    assert (done.code, done.err) == (0, "")
    if form == "json":
        document = done.json
        lines = document if by == "tool" else document["lines"]
        assert lines[0]["key"] == {"day": "2026-11-20", "tool": "Read", "model": "claude-sonnet-5"}.get(
            by, lines[0]["key"]
        )
    elif form == "csv":
        rows = list(csv.DictReader(io.StringIO(done.out)))
        assert rows and all(None not in row and None not in row.values() for row in rows)
    else:
        assert done.out.count("\n") >= 3


def test_the_sums_of_a_report(run: Run, log: Path) -> None:
    """LOG-26, LOG-42"""
    whole = run("report", "--format", "json", log).json["total"]

    assert (whole["requests"], whole["input"], whole["output"], whole["cache_write_1h"]) == (2, 300, 60, 300)
    assert (whole["cost"], whole["unlogged_cost"]) == (0.0045, 0.0015)


def test_words_may_stand_in_any_order(run: Run, log: Path) -> None:
    first = run("report", "session", "--format", "csv", log).out

    assert run("report", "--format", "csv", "session", log).out == first
    assert run("report", "session", log, "--format", "csv").out == first
    assert run("report", log, "--format", "csv").code == 0


def test_filters_hold_for_every_report(run: Run, log: Path) -> None:
    """LOG-41"""

    def requests(*words: str) -> int:
        return run("report", "--format", "json", "--tz", "UTC", log, *words).json["total"]["requests"]

    assert requests("--until", "2026-11-20") == 1
    assert requests("--since", "2026-11-21T09:59:01") == 1
    assert requests("--since", "2026-11-22") == 0
    assert requests("--model", "opus") == 0
    assert requests("--project", "user/p", "--session", "s1") == 2


@pytest.mark.parametrize(
    "words",
    [
        ["report", "--since", "yesterday"],
        ["report", "--tz", "Mars/Olympus"],
        ["report", "--last", "7"],
        ["report", "--last", "7d", "--since", "2026-11-20"],
        ["report", "--since", "2026-11-20", "--until", "2026-11-19"],
        ["report", "--prices", "nowhere.json"],
        ["report", "--bogus"],
        ["report", "nowhere.jsonl"],
        ["convert", "-o", "x.docx"],
        ["convert", "-o", "-", "--format", "parquet"],
        ["sql", "selec"],
        ["nonsense"],
        [],
    ],
    ids=" ".join,
)
def test_misuse_is_told_from_findings(run: Run, log: Path, words: list[str]) -> None:
    """LOG-47"""
    done = run(*words, *([log] if len(words) > 1 else []))

    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert done.err


def test_lines_that_cannot_be_read_are_said(run: Run, log: Path) -> None:
    """LOG-04, LOG-47"""
    log.write_bytes(log.read_bytes() + b"broken\n" + b"{\xff}\n")

    usual, strict, doctor = run("report", log), run("report", "--strict", log), run("doctor", log)

    assert usual.code == 0
    assert "1 lines could not be read" in usual.err
    assert strict.code == 1
    assert doctor.code == 1
    assert [line.split()[1:3] for line in doctor.out.splitlines() if line.startswith(str(log))] == [
        ["6", "lost"],
        ["7", "lost"],
    ]


def test_a_healthy_log_has_no_findings(run: Run, log: Path) -> None:
    """LOG-46, LOG-30"""
    assert run("doctor", log).code == 0
    assert run("reconcile", log).code == 0


def test_a_difference_to_the_cli_s_total_is_a_finding(run: Run, maker: Maker, tmp_path: Path) -> None:
    """LOG-30"""
    made = maker()
    made.answer()
    made.state({"claude-sonnet-5": (100, 20, 1000, 200, 100, 9.0)})

    done = run("reconcile", "--format", "json", made.write(tmp_path / "log.jsonl"))

    assert done.code == 1
    assert [(one["agrees"], one["cost_difference"]) for one in done.json] == [(False, -8.9985)]


def test_a_model_without_a_price_is_said(run: Run, maker: Maker, tmp_path: Path) -> None:
    """LOG-29"""
    made = maker()
    made.answer(model="claude-of-next-year\x1b[31m")
    path = made.write(tmp_path / "log.jsonl")

    done = run("report", path)

    assert "no price for 'claude-of-next-year" in done.err
    assert "$0.00*" in done.out
    assert run("report", "--format", "json", path).json["unpriced"] == {"claude-of-next-year\x1b[31m": 1420}
    assert run("doctor", path).code == 1


def test_no_log_moves_the_cursor_of_a_terminal(run: Run, maker: Maker, tmp_path: Path) -> None:
    made = maker("s\x1b[2J\x07", project="/home/\x1b]0;title\x07")
    made.answer(model="\x1b[31mred")
    path = made.write(tmp_path / "log.jsonl")

    outputs = [run("report", by, path).out for by in ("session", "model", "project")]
    outputs += [run("doctor", path).out, run("reconcile", path).out]

    assert not any("\x1b" in out or "\x07" in out for out in outputs)


def test_no_log_puts_a_formula_into_a_spreadsheet(run: Run, maker: Maker, tmp_path: Path) -> None:
    made = maker("=cmd()", project="@SUM(1)")
    made.answer()

    rows = list(csv.DictReader(io.StringIO(run("convert", "--format", "csv", made.write(tmp_path / "log.jsonl")).out)))

    assert (rows[0]["session"], rows[0]["project"]) == ("'=cmd()", "'@SUM(1)")


# --- convert


def test_an_archive_tells_the_same_as_the_logs(run: Run, log: Path, tmp_path: Path) -> None:
    """LOG-44: also together with them, and with what was read before."""
    archive = tmp_path / "archive.jsonl"
    before = run("report", "session", "--format", "json", log).json["lines"]

    assert run("convert", "-o", archive, log).code == 0

    assert run("report", "session", "--format", "json", archive, log).json["lines"] == before
    log.unlink()
    assert run("report", "session", "--format", "json", archive).json["lines"] == before
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600


def test_a_file_is_not_written_over_unasked(run: Run, log: Path, tmp_path: Path) -> None:
    """LOG-44"""
    (tmp_path / "kept.csv").write_text("kept")

    refused = run("convert", "-o", tmp_path / "kept.csv", log)

    assert (refused.code, (tmp_path / "kept.csv").read_text()) == (2, "kept")
    assert run("convert", "-o", tmp_path / "kept.csv", "--force", log).code == 0
    assert (tmp_path / "kept.csv").read_text().startswith("key,kind,time")


def test_a_transcript_is_written_as_markdown(run: Run, log: Path) -> None:
    """LOG-44"""
    text = run("convert", "--format", "md", log).out

    assert "# Session s1" in text
    assert "What is <b>this</b>?" in text
    # The result has a fence of its own, so it stands in a longer one.
    assert "````\n```\nfile\n```\n````" in text


def test_parquet_says_what_to_install_or_is_written(run: Run, log: Path, tmp_path: Path) -> None:
    """LOG-44, LOG-48"""
    target = tmp_path / "rows.parquet"
    done = run("convert", "-o", target, log)

    if find_spec("duckdb") is None:
        assert (done.code, target.exists()) == (2, False)
        assert 'pip install "cc-convert[sql]"' in done.err
        return
    assert done.code == 0
    [found] = pytest.importorskip("duckdb").sql(f"select count(*), sum(cost), min(time) from '{target}'").fetchall()
    assert (found[0], round(found[1], 9), found[2].year) == (3, 0.0045, 2026)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


# --- sql


def test_sql_asks_the_rows(run: Run, log: Path) -> None:
    """LOG-46"""
    query = "select kind, count(*) as n, round(sum(cost), 6) as cost from requests group by kind order by kind"

    done = run("sql", query, log, "--format", "json")

    assert done.json == [{"kind": "request", "n": 2, "cost": 0.003}, {"kind": "unlogged", "n": 1, "cost": 0.0015}]


def test_sql_by_duckdb_says_what_to_install_or_asks(run: Run, log: Path) -> None:
    """LOG-46, LOG-48"""
    done = run(
        "sql", "select count(*) as n, max(tools) as t from requests", log, "--engine", "duckdb", "--format", "json"
    )

    if find_spec("duckdb") is None:
        assert done.code == 2
        assert 'pip install "cc-convert[sql]"' in done.err
        return
    assert done.json == [{"n": 3, "t": "Read"}]
    assert run("sql", "select min(time) as t from requests", log, "--engine", "duckdb").code == 0


def test_a_cluster_says_what_to_install(run: Run, log: Path) -> None:
    """LOG-48"""
    if find_spec("distributed") is None:
        done = run("report", log, "--dask", "tcp://127.0.0.1:1")
        assert done.code == 2
        assert 'pip install "cc-convert[dask]"' in done.err


# --- responses


def test_responses_are_those_of_the_library(run: Run) -> None:
    """LOG-45"""
    done = run("responses", LOGS / "tool_call.jsonl")

    assert CLIResponse.model_validate_json(done.out).result == "The file says: sunny, 21 degrees."
    assert done.code == 0
    assert run("responses", "--text", LOGS / "tool_call.jsonl").out == "The file says: sunny, 21 degrees.\n"


def test_a_stream_without_a_result_is_a_finding(run: Run, tmp_path: Path) -> None:
    """LOG-45, LOG-47"""
    lines = (LOGS / "tool_call.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_bytes(b"".join(lines[:-1]))
    (tmp_path / "odd.jsonl").write_bytes(b"odd\n" + b"".join(lines))

    assert run("responses", tmp_path / "cut.jsonl").code == 1
    odd = run("responses", tmp_path / "odd.jsonl")
    assert (odd.code, odd.out.count("\n")) == (1, 1)


def test_a_response_comes_while_the_pipe_is_open() -> None:
    """LOG-45"""
    content = (LOGS / "tool_call.jsonl").read_bytes()
    process = subprocess.Popen([*COMMAND, "responses", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdin and process.stdout
        for _ in range(2):
            process.stdin.write(content)
            process.stdin.flush()
            assert CLIResponse.model_validate_json(process.stdout.readline()).succeeded
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


# --- as a process


def process(*words: object, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *map(str, words)], input=given, capture_output=True, timeout=PATIENCE)


def test_a_pipe_is_read(log: Path) -> None:
    """LOG-02"""
    done = process("report", "-", "--format", "json", given=log.read_bytes())

    assert json.loads(done.stdout)["total"]["requests"] == 2


def test_a_closed_pipe_is_no_crash(maker: Maker, tmp_path: Path) -> None:
    """LOG-47"""
    made = maker()
    for number in range(5000):
        made.answer(f"msg_{number}")
    path = made.write(tmp_path / "log.jsonl")
    process = subprocess.Popen([*COMMAND, "convert", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout and process.stderr
    process.stdout.readline()
    process.stdout.close()

    assert (process.wait(PATIENCE), process.stderr.read()) == (0, b"")
    process.stderr.close()


def test_an_interrupt_is_quiet(log: Path) -> None:
    """LOG-47"""
    process = subprocess.Popen(
        [*COMMAND, "responses", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write((LOGS / "tool_call.jsonl").read_bytes())
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)

    assert (process.wait(PATIENCE), process.stderr.read()) == (130, b"")
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def test_watch_shows_what_came_in(maker: Maker, tmp_path: Path) -> None:
    """LOG-46"""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    made, path = maker(), tmp_path / "log.jsonl"
    made.answer("msg_1", timestamp=now)
    made.write(path)
    process = subprocess.Popen(
        [*COMMAND, "watch", path, "--interval", "0.2", "--tz", "UTC"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout and process.stderr
        assert any(line.startswith(b"today") and b"  1 " in line for line in iter(process.stdout.readline, b""))
        made.answer("msg_2", timestamp=now)
        made.write(path)
        assert any(line.startswith(b"today") and b"  2 " in line for line in iter(process.stdout.readline, b""))
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]
        process.stderr.close()  # type: ignore[union-attr]


def test_the_status_line_is_one_line(maker: Maker, tmp_path: Path) -> None:
    """LOG-46: whatever it is given."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    made = maker()
    made.answer(timestamp=now)
    made.write(tmp_path / "claude" / "projects" / "p" / "s1.jsonl")
    given = {"session_id": "s1", "model": {"display_name": "Sonnet\x1b[2J"}, "cost": {"total_cost_usd": 0.25}}

    lines = [process("statusline", given=one).stdout.decode() for one in (json.dumps(given).encode(), b"odd", b"[3]")]

    assert lines[0].startswith("Sonnet[2J | session $0.25 | today $0.0015 | block $0.0015, ")
    assert all(line.count("\n") == 1 for line in lines)


def test_completion_knows_the_commands(run: Run) -> None:
    """LOG-47"""
    for shell in ("bash", "zsh", "fish"):
        script = run("completion", shell).out
        assert all(word in script for word in ("report", "reconcile", "week-start", "tool"))
    tried = "COMP_WORDS=(cc-convert report mo); COMP_CWORD=2; _cc_convert; echo ${COMPREPLY[@]}"
    script = f"{run('completion', 'bash').out}\n{tried}"
    checked = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd="/")
    assert checked.stdout.split()[0] == "month"


@pytest.mark.parametrize(
    "command", ["", "report", "convert", "responses", "reconcile", "watch", "statusline", "doctor", "sql"]
)
def test_help_is_there(run: Run, command: str) -> None:
    done = run(*([command] if command else []), "--help")

    assert (done.code, done.err) == (0, "")
    assert "usage: cc-convert" in done.out


def test_a_repeated_report_needs_no_logs_but_their_looks(run: Run, log: Path) -> None:
    """LOG-56"""
    first = run("report", "--format", "json", log).out
    content, status = log.read_bytes(), log.stat()
    log.write_bytes(b"x" * len(content))
    os.utime(log, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert run("report", "--format", "json", log).out == first
    assert run("report", "--format", "json", "--no-cache", log).out != first


def test_a_report_imports_no_models() -> None:
    """LOG-56: pydantic's models and everything heavy would take longer than the report."""
    code = "import sys; from cc_convert.cli import main; main(['report', sys.argv[1]]); print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code, LOGS], capture_output=True, text=True, check=True)

    loaded = set(done.stdout.split())
    assert "cc_convert.scan" in loaded
    assert not {"pydantic.main", "asyncio", "rich.console", "duckdb", "sqlite3", "multiprocessing"} & loaded
