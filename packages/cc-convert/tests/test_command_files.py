"""The commands that convert: files, SQL, responses."""

import os
import stat
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cc_convert.cli.output import write_output
from cc_types import CLIResponse

Run: TypeAlias = Callable[..., Any]
LOGS = Path(__file__).parent / "logs"


# --- convert


def test_an_archive_tells_the_same_as_the_logs(run: Run, short_log: Path, tmp_path: Path) -> None:
    """LOG-44: also together with them, and with a cache."""
    archive = tmp_path / "archive.jsonl"
    before = run("report", "session", "--format", "json", short_log).json["lines"]

    assert run("convert", "-o", archive, short_log).code == 0

    assert run("report", "session", "--format", "json", archive, short_log).json["lines"] == before
    short_log.unlink()
    assert run("report", "session", "--format", "json", archive).json["lines"] == before
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600


def test_a_file_is_not_written_over_unasked(run: Run, short_log: Path, tmp_path: Path) -> None:
    """LOG-44"""
    (tmp_path / "kept.csv").write_text("kept")

    refused = run("convert", "-o", tmp_path / "kept.csv", short_log)

    assert (refused.code, (tmp_path / "kept.csv").read_text()) == (2, "kept")
    assert run("convert", "-o", tmp_path / "kept.csv", "--force", short_log).code == 0
    assert (tmp_path / "kept.csv").read_text().startswith("key,kind,time")


def test_a_transcript_is_written_as_markdown(run: Run, short_log: Path) -> None:
    """LOG-44"""
    text = run("convert", "--format", "md", short_log).out

    assert "# Session s1" in text
    assert "What is <b>this</b>?" in text
    # The result contains a fence, so a longer fence encloses it.
    assert "````\n```\nfile\n```\n````" in text


def test_parquet_says_what_to_install_or_is_written(run: Run, short_log: Path, tmp_path: Path) -> None:
    """LOG-44, LOG-48"""
    target = tmp_path / "rows.parquet"
    done = run("convert", "-o", target, short_log)

    if find_spec("duckdb") is None:
        assert (done.code, target.exists()) == (2, False)
        assert 'pip install "cc-convert[sql]"' in done.err
        return
    assert done.code == 0
    [row] = pytest.importorskip("duckdb").sql(f"select count(*), sum(cost), min(time) from '{target}'").fetchall()
    assert (row[0], round(row[1], 9), row[2].year) == (3, 0.0045, 2026)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path) -> None:
    """LOG-44"""
    target = tmp_path / "page.md"
    target.write_text("mine")
    with pytest.raises(ZeroDivisionError), write_output(str(target), force=True) as file:
        file.write("half")
        raise ZeroDivisionError
    assert target.read_text() == "mine"
    assert os.listdir(tmp_path) == ["page.md"]


# --- sql


def test_sql_asks_the_rows(run: Run, short_log: Path) -> None:
    """LOG-46"""
    query = "select kind, count(*) as n, round(sum(cost), 6) as cost from requests group by kind order by kind"

    done = run("sql", query, short_log, "--format", "json")

    assert done.json == [{"kind": "request", "n": 2, "cost": 0.003}, {"kind": "unlogged", "n": 1, "cost": 0.0015}]


def test_columns_of_one_name_get_numbers(run: Run, short_log: Path) -> None:
    """LOG-46"""
    done = run("sql", "select 1 as n, 2 as n, 3 as n_2", short_log, "--format", "json")
    assert done.json == [{"n": 1, "n_2": 2, "n_2_2": 3}]


def test_an_error_in_a_later_row_is_said(run: Run, short_log: Path) -> None:
    """LOG-46"""
    query = "select abs(v) from (select 1 as v union all select -9223372036854775808)"
    done = run("sql", query, short_log)
    assert (done.code, done.err) == (2, "cc-convert: SQL: integer overflow\n")


def test_sql_by_duckdb_says_what_to_install_or_asks(run: Run, short_log: Path) -> None:
    """LOG-46, LOG-48"""
    query = "select count(*) as n, max(tools) as t from requests"
    done = run("sql", query, short_log, "--engine", "duckdb", "--format", "json")

    if find_spec("duckdb") is None:
        assert done.code == 2
        assert 'pip install "cc-convert[sql]"' in done.err
        return
    assert done.json == [{"n": 3, "t": "Read"}]
    assert run("sql", "select min(time) as t from requests", short_log, "--engine", "duckdb").code == 0


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


def test_an_archive_keeps_what_the_cli_has_deleted(run: Run, maker: Any, tmp_path: Path) -> None:
    """LOG-44: also with a filter, and without counting a request twice; `--force` begins anew."""
    archive, folder = tmp_path / "archive.jsonl", tmp_path / "logs"

    def archived() -> list[str]:
        return sorted(line["key"] for line in run("report", "session", archive, "--format", "json").json["lines"])

    for number, options in enumerate(([], [], ["--session", "s2"], ["--session", "nothing"])):
        log = maker(f"s{number}")
        log.answer(f"msg_{number}")
        log.state({"claude-sonnet-5": (200, 40, 2000, 400, 200, 0.003)})
        path = log.write(folder / f"s{number}.jsonl")
        assert run("convert", folder, "-o", archive, *options).code == 0
        assert run("convert", folder, "-o", archive, *options).code == 0
        path.unlink()

    assert archived() == ["s0", "s1", "s2"]
    assert run("report", archive, "--format", "json").json["total"]["input"] == 600
    log = maker("s3")
    log.answer("msg_3")
    log.write(folder / "s3.jsonl")
    assert run("convert", folder, "-o", archive, "--force").code == 0
    assert archived() == ["s3"]
    other = tmp_path / "other.jsonl"
    other.write_text("{}\n", "utf-8")
    assert run("convert", folder, "-o", other).code == 2


def test_texts_that_begin_alike_are_all_in_a_transcript(run: Run, log: Any) -> None:
    """LOG-44"""
    log.answer(content=[{"type": "text", "text": "And so on. " * 50 + word} for word in ("First.", "Second.")])
    done = run("convert", "--format", "md", str(log.write()))
    assert "First." in done.out and "Second." in done.out


def test_what_the_model_was_told_beside_messages_is_found_and_shown_once(run: Run, log: Any) -> None:
    """LOG-102"""
    log.user("Read it.")
    found = {"type": "web_search_result", "title": "Theirs", "url": "https://example.com"}
    log.answer(content=[{"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]}])
    advice = {"type": "advisor_result", "text": "Words of advice."}
    log.answer(content=[{"type": "advisor_tool_result", "tool_use_id": "srvtoolu_2", "content": advice}])
    log.user([{"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}])
    log.user([{"type": "document", "source": {"type": "text", "data": "Words of a paper."}}])
    common = {"sessionId": "s1", "timestamp": log.time()}
    file = {"type": "text", "file": {"filePath": "/p/notes.txt", "content": "Words of the file."}}
    attachments: list[Any] = [
        {"type": "queued_command", "prompt": "Typed meanwhile."},
        {"type": "file", "filename": "/p/notes.txt", "content": file},
        {"type": "skill_listing", "content": "Words of Claude Code."},
    ]
    queued = {"type": "queue-operation", "operation": "enqueue", "content": "Typed meanwhile.", **common}
    told = (
        {"type": "attachment", "attachment": attachment, "uuid": str(number), **common}
        for number, attachment in enumerate(attachments)
    )
    log.lines += [queued, *told]
    log.user("All that was before.", isCompactSummary=True)
    log.user([], toolUseResult={"stdout": "Alone."}, uuid="alone")
    path = str(log.write())
    page = run("convert", "--format", "md", path).out
    texts = (
        "Typed meanwhile.",
        "Words of the file.",
        "Words of a paper.",
        "All that was before.",
        "Theirs",
        "Alone.",
        "of advice.",
        "a.pdf",
    )
    for words in texts:
        assert page.count(words) == 1
        assert len(run("search", words, "--format", "json", path).json) == 1, words
    assert "Words of Claude Code." not in page


def test_what_the_user_went_back_from_is_marked(run: Run, log: Any) -> None:
    """LOG-102: and not the parallel results of tools, nor what a compaction took."""
    log.user("First.", uuid="a")
    log.answer(parentUuid="a", uuid="b")
    log.user("Left.", parentUuid="b", uuid="c")
    log.answer(parentUuid="c", uuid="d", content=[{"type": "text", "text": "Left, too."}])
    log.user("Instead.", parentUuid="b", uuid="e")
    calls: list[Any] = [
        {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {}} for number in range(2)
    ]
    log.answer("msg", parentUuid="e", uuid="f", content=calls[:1])
    log.answer("msg", parentUuid="f", uuid="g", content=calls[1:])
    for number, parent in enumerate("fg"):
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "done"}
        log.user([result], parentUuid=parent, uuid=f"result-{number}")
    log.answer(parentUuid="result-1", uuid="h", content=[{"type": "text", "text": "Last."}])
    page = run("convert", "--format", "md", str(log.write())).out
    headings = [line.partition(" · ")[0] for line in page.splitlines() if line.startswith("## ")]
    assert headings == [
        "## User", "## Claude", "## User (rewound)", "## Claude (rewound)", "## User", "## Tool call", "## Tool call",
        "## Tool result", "## Tool result", "## Claude",
    ]  # fmt: skip
