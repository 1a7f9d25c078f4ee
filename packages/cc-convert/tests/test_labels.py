"""Session labels: branch, machine, entry point, version, title."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.log_files.cache import Cache
from cc_convert.log_files.titles import read_titles
from cc_convert.logs import read_logs

Maker: TypeAlias = Callable[..., Any]
Run: TypeAlias = Callable[..., Any]
LABELS = {"gitBranch": "main", "entrypoint": "sdk-py", "version": "2.1.329"}


@pytest.fixture
def two_machines(maker: Maker, tmp_path: Path) -> Path:
    """Folders `a` and `b` with two sessions; a session changed its branch."""
    first, second = maker("s1"), maker("s2", project="/home/user/q")
    first.user("Mend the pool", **LABELS)
    first.answer(**LABELS)
    first.answer(**LABELS | {"gitBranch": "feature/x"})
    second.answer(**LABELS | {"version": "2.2.0", "entrypoint": "cli"})
    first.write(tmp_path / "a" / "one.jsonl")
    second.write(tmp_path / "b" / "two.jsonl")
    return tmp_path


def test_rows_tell_where_a_session_ran(two_machines: Path) -> None:
    """LOG-70"""
    logs = read_logs(two_machines / "a", two_machines / "b", hosts={str(two_machines / "b"): "laptop"})

    assert [(row.branch, row.host, row.entrypoint, row.version) for row in logs.rows] == [
        ("main", "laptop", "cli", "2.2.0"),
        ("main", "", "sdk-py", "2.1.329"),
        ("feature/x", "", "sdk-py", "2.1.329"),
    ]


@pytest.mark.parametrize(
    ("by", "requests"),
    [
        ("branch", {"main": 2, "feature/x": 1}),
        ("host", {"unknown": 2, "laptop": 1}),
        ("entrypoint", {"sdk-py": 2, "cli": 1}),
        ("version", {"2.1.329": 2, "2.2.0": 1}),
    ],
)
def test_reports_by_branch_machine_entry_point_and_version(
    run: Run, two_machines: Path, by: str, requests: dict[str, int]
) -> None:
    """LOG-71, LOG-72"""
    done = run("report", by, two_machines / "a", "--from", f"laptop:{two_machines / 'b'}", "--format", "json")

    assert {line["key"]: line["requests"] for line in done.json["lines"]} == requests


@pytest.mark.parametrize(
    ("words", "requests"),
    [
        (["--branch", "main"], 2),
        (["--branch", "feature/*"], 1),
        (["--branch", "mai"], 0),
        (["--host", "laptop"], 1),
        (["--entrypoint", "cli"], 1),
        (["--cli-version", "2.1.*"], 2),
        (["--cli-version", "2.2.0", "--branch", "main"], 1),
    ],
)
@pytest.mark.parametrize("hours", [[], ["--since", "2026-11-20T10:00:01"]])
def test_filters_take_whole_names_or_patterns(
    run: Run, two_machines: Path, words: list[str], requests: int, hours: list[str]
) -> None:
    """LOG-71: by the buckets as well as by the rows, which bounds within a quarter-hour need."""
    sources = [two_machines / "a", "--from", f"laptop:{two_machines / 'b'}", "--format", "json"]

    assert run("report", *sources, *words, *hours).json["total"]["requests"] == requests


def test_a_report_of_sessions_names_them(run: Run, two_machines: Path) -> None:
    """LOG-70, LOG-73"""
    sources = [two_machines / "a", "--from", f"laptop:{two_machines / 'b'}"]

    first, second = run("report", "session", *sources, "--format", "json").json["lines"]
    table = run("report", "session", *sources).out

    assert (first["key"], first["host"], first["title"], first["branch"]) == ("s2", "laptop", "", "main")
    assert (second["title"], second["branch"], second["entrypoint"]) == ("Mend the pool", "main, feature/x", "sdk-py")
    assert all(word in table for word in ("Title", "Mend the pool", "Branch", "Host", "Entry point", "CLI version"))


def test_a_request_of_two_machines_counts_once(run: Run, two_machines: Path) -> None:
    """LOG-72, LOG-20: a folder that is kept on both."""
    words = ["--from", f"desk:{two_machines / 'a'}", "--from", f"laptop:{two_machines / 'c'}", "--format", "json"]
    (two_machines / "c").mkdir()
    (two_machines / "c" / "one.jsonl").write_bytes((two_machines / "a" / "one.jsonl").read_bytes())

    assert run("report", *words).json["total"]["requests"] == 2


@pytest.mark.parametrize("word", ["laptop", "laptop:", ":folder", "laptop:nowhere", "/a/b:c"])
def test_a_machine_whose_logs_are_not_here_is_refused(run: Run, word: str) -> None:
    """LOG-72: nothing is fetched from another machine."""
    done = run("report", "--from", word)

    assert (done.code, done.out) == (2, "")
    assert ("rsync" in done.err) == (word == "laptop:nowhere")


# --- titles


def titled(kind: str, title: str, session: str = "s1") -> dict[str, object]:
    field = {"custom-title": "customTitle", "ai-title": "aiTitle"}[kind]
    return {"type": kind, field: title, "sessionId": session}


def test_titles_are_the_users_else_generated_else_the_first_prompt(log: Any) -> None:
    """LOG-73"""
    log.user("<local-command-stdout>done</local-command-stdout>")
    log.user([{"type": "image"}, {"type": "text", "text": "  Mend\n the pool "}])
    log.user("And the tests")
    titles = [read_titles([str(log.write())])]
    for line in (titled("ai-title", "Pool repair"), titled("custom-title", "First"), titled("custom-title", "Second")):
        log.lines.append(line)
        titles.append(read_titles([str(log.write())]))
    log.lines.append(titled("ai-title", "Other"))

    assert [one["s1"] for one in titles] == ["Mend the pool", "Pool repair", "First", "Second"]
    assert read_titles([str(log.write())]) == {"s1": "Second"}


def test_titles_at_both_ends_of_a_long_log_are_found(log: Any) -> None:
    """LOG-73"""
    log.user("Mend the pool")
    log.user([{"type": "tool_result", "tool_use_id": "t", "content": "x" * 3_000_000}])
    path = str(log.write())
    assert read_titles([path]) == {"s1": "Mend the pool"}

    log.lines.append(titled("ai-title", "Pool repair"))
    log.write()

    assert read_titles([path]) == {"s1": "Pool repair"}


def test_titles_are_read_anew_only_where_a_log_changed(log: Any) -> None:
    """LOG-73, LOG-06: and only their owner can read the cache."""
    log.user("Mend the pool")
    path, cache = log.write(), Cache()
    first = read_titles([str(path)], cache)
    entries = list(Path(cache.folder).iterdir())
    identity = path.stat()
    path.write_bytes(path.read_bytes().replace(b"Mend", b"Lose"))

    changed = read_titles([str(path)], cache)

    assert (first, changed) == ({"s1": "Mend the pool"}, {"s1": "Lose the pool"})
    assert path.stat().st_size == identity.st_size
    assert [stat.S_IMODE(one.stat().st_mode) for one in entries] == [0o600]


def test_damaged_logs_have_the_titles_that_can_be_read(log: Any, tmp_path: Path) -> None:
    """LOG-73, LOG-57"""
    log.user("Mend the pool")
    (tmp_path / "odd.jsonl").write_bytes(
        b'\xff\0{"type":"user"\n[1,{}]\n' + log.text() + b'{"type":"custom-title","cust'
    )
    (tmp_path / "odd.jsonl.gz").write_bytes(b"\x1f\x8bbroken")
    odd = titled("ai-title", "x") | {"aiTitle": 7}
    (tmp_path / "odder.jsonl").write_text(json.dumps(odd) + "\n" + json.dumps(odd | {"type": ["ai-title"]}))

    paths = [str(tmp_path / name) for name in ("odd.jsonl", "odd.jsonl.gz", "odder.jsonl", "nowhere.jsonl")]

    assert read_titles(paths) == {"s1": "Mend the pool"}


def test_a_session_has_one_project_and_several_folders(run: Any, maker: Any, tmp_path: Path) -> None:
    """LOG-74: also for its budget, and on Windows and macOS."""
    log = maker("s1", project="/w/shop")
    for folder in ("/w/shop", "/w/shop/api", "/w/shop"):
        log.answer(cwd=folder)
    log.write(tmp_path / "logs" / "a.jsonl")
    for number, folder in enumerate(("C:\\w\\caf\u00e9", "c:\\w\\cafe\u0301")):
        log = maker(f"w{number}", project=folder)
        log.answer()
        log.write(tmp_path / "logs" / f"w{number}.jsonl")

    def requests(by: str, *options: str) -> dict[str, int]:
        lines = run("report", by, tmp_path / "logs", "--format", "json", *options).json["lines"]
        return {line["key"]: line["requests"] for line in lines}

    assert requests("project") == {"/w/shop": 3, "C:\\w\\caf\u00e9": 2}
    assert requests("folder", "--project", "shop") == {"/w/shop": 2, "/w/shop/api": 1}
    limit = ("--alert", "project:/w/shop>$0.004")
    assert "/w/shop: $0.0" in run("report", "day", tmp_path / "logs", *limit).err
