"""Output for a person at a terminal: tables that fit, errors that help, packed logs, and a live picture."""

import bz2
import io
import lzma
import re
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.cli.output import write_table
from cc_convert.cli.watch import picture
from cc_convert.log_files.files import read_files
from cc_convert.prices import Prices
from cc_convert.report.alerts import parse_alert

Maker: TypeAlias = Callable[..., Any]
Run: TypeAlias = Callable[..., Any]


def now(seconds_ago: float = 0.0) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds_ago))


# --- tables


def test_no_cell_is_cut_at_any_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """LOG-94: rich would cut the last digit, where a single column is missing."""
    table = [["Day", "Requests", "Cost"], ["2026-11-24", "12", "$0.15"]]
    monkeypatch.setenv("TERM", "dumb")
    for columns in range(22, 45):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("sys.stdout", terminal := io.StringIO())
        monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
        write_table(terminal, table)
        assert {"Requests", "2026-11-24", "$0.15"} <= {*terminal.getvalue().split()}, columns


def test_columns_are_aligned_below_wide_characters(run: Run, maker: Maker, tmp_path: Path) -> None:
    """LOG-94: each of these takes two columns in a terminal."""
    for number, project in enumerate(("\u65e5\u672c\u8a9e", "ascii", "e\u0301t\u00e9")):
        log = maker(f"s{number}", project=project)
        log.answer()
        log.write(tmp_path / f"{number}.jsonl")
    lines = run("report", "folder", tmp_path).out.splitlines()
    starts = {line.split()[0]: line.index("1 ") for line in lines[2:5]}
    assert starts == {"\u65e5\u672c\u8a9e": 15 - 3, "ascii": 15, "e\u0301t\u00e9": 15 + 1}


def test_every_report_marks_costs_that_lack_a_price(run: Run, log: Any) -> None:
    """LOG-92"""
    call: dict[str, object] = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
    log.answer(model="claude-of-2030", content=[call], timestamp=now())
    path = log.write()

    for by in ("day", "session", "model", "project", "agent", "block", "tool"):
        assert "$0.00*" in run("report", by, path).out
    assert "$0.00*" in run("watch", "--once", path).out


# --- errors


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("report dayy", "no such file: dayy; did you mean day?"),
        ("report projects --last 7d", "did you mean project?"),
        ("reprot", "did you mean report?"),
        ("report --fromat json", "did you mean --format?"),
        ("watch --no-cache", "unrecognized arguments: --no-cache\n"),
        ("report --format jsn", "did you mean json?"),
        ("report --alert day=20", "'day=20' is not an alert"),
        ("report --alert 5h>20", "'5h>20' is not an alert"),
        ("report --alert dya>$5", "did you mean day?"),
        ("report --last 7d --tz Europe/Berln", "did you mean Europe/Berlin?"),
        ("report --alert 5h>80%", "cc-convert watch"),
    ],
)
def test_an_error_names_what_was_probably_meant(run: Run, short_log: Path, line: str, hint: str) -> None:
    """LOG-95"""
    done = run(*line.split(), *([short_log] if "--alert" in line or "--last" in line else []))
    assert (done.code, done.out) == (2, "")
    assert hint in done.err


@pytest.mark.parametrize("words", [["report"], ["convert", "-o", "-"], ["reconcile"]])
def test_a_missing_file_is_named_with_the_most_similar_one(run: Run, short_log: Path, words: list[str]) -> None:
    """LOG-95"""
    done = run(*words, short_log.parent / "lgo.jsonl")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"lgo.jsonl; did you mean {short_log}?\n")


def test_a_search_without_a_text_names_the_text_alone(run: Run) -> None:
    """LOG-95"""
    assert "required: TEXT\n" in run("search").err


def test_a_report_without_requests_says_where_it_looked(run: Run, tmp_path: Path) -> None:
    """LOG-95"""
    place = tmp_path / "claude" / "projects"
    missing = run("report")
    assert (missing.code, f"looked for {place};" in missing.err) == (2, True)
    place.mkdir(parents=True)
    assert run("report").out == f"No requests in 0 logs; read: {place}\n"
    (tmp_path / "empty.jsonl").touch()
    assert run("report", tmp_path / "empty.jsonl").out == f"No requests in 1 logs; read: {tmp_path}/empty.jsonl\n"


def test_an_error_about_the_output_names_the_file_as_the_user_did(run: Run, short_log: Path, tmp_path: Path) -> None:
    """LOG-95"""
    target = tmp_path / "missing" / "report.html"
    for words in (["report", "--format", "html"], ["convert"]):
        done = run(*words, short_log, "-o", target)
        assert (done.code, done.err) == (
            2,
            f"cc-convert: {target}: there is no folder {target.parent}; create it first\n",
        )


# --- packed logs


@pytest.mark.parametrize(("ending", "pack"), [(".bz2", bz2.compress), (".xz", lzma.compress)])
def test_logs_packed_with_bzip2_and_xz_are_read(
    run: Run, short_log: Path, tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    """LOG-96: in a folder and by name; a damaged one is reported."""
    expected = run("report", "--format", "json", short_log).json["total"]
    folder = tmp_path / "packed"
    folder.mkdir()
    packed = folder / f"log.jsonl{ending}"
    packed.write_bytes(pack(short_log.read_bytes()))

    assert run("report", "--format", "json", folder).json["total"] == expected
    assert run("report", "--format", "json", packed).json["total"] == expected
    packed.write_bytes(packed.read_bytes()[:-40])
    damaged = run("report", folder)
    assert (damaged.code, "packed, and damaged" in damaged.err) == (1, True)


def test_a_log_packed_with_zstd_is_read_or_named(run: Run, short_log: Path, tmp_path: Path) -> None:
    """LOG-96: Python 3.14 can read it; others say that it was passed over."""
    folder = tmp_path / "packed"
    folder.mkdir()
    (folder / "log.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd" + short_log.read_bytes())

    done = run("report", folder)

    assert done.code == 1
    assert "log.jsonl.zst: packed" in done.err
    if sys.version_info < (3, 14):
        assert "packed with zstd, which this Python cannot read: unpack it first" in done.err


# --- the live picture


def picture_of(path: Path, columns: int | None = None, *alerts: str) -> str:
    options = Namespace(cost="auto", alerts=[parse_alert(alert) for alert in alerts])
    return picture(read_files([str(path)]), options, Prices(), None, columns).text


@pytest.mark.parametrize("columns", [None, 50, 30])
def test_watch_has_headings_marks_and_fits(log: Any, columns: int | None) -> None:
    """LOG-97"""
    log.answer(timestamp=now(), usage=log.usage(input_tokens=123_456_789))
    log.answer(timestamp=now(), model="claude-of-2030")

    text = picture_of(log.write(), columns)

    assert text.startswith("Claude Code, ")
    [models] = re.findall(r"^Today by model.*?\n(?=\* )", text, flags=re.MULTILINE | re.DOTALL)
    assert [line.split()[0] for line in models.splitlines()[2:]] == ["claude-sonnet-5", "claude-of-2030"]
    assert "$0.00*" in models
    assert "* without 1,420 tokens that have no price" in text
    if columns:
        assert all(len(line) <= max(columns, 44) for line in text.splitlines())
