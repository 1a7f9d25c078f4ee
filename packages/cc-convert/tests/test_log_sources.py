"""Log sources, and incremental reading."""

import gzip
import json
import os
import shutil
import stat
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import cc_convert.log_files.cache as cache_module
from cc_convert.log_files.sources import default_folders
from cc_convert.logs import Cache, Logs, LogsNotFoundError, read_logs
from cc_convert.reconcile import reconcile

Maker: TypeAlias = Callable[..., Any]
LOGS = Path(__file__).parent / "logs"
TRANSCRIPTS = Path(__file__).parent / "transcripts"


@pytest.fixture
def tree(maker: Maker, tmp_path: Path) -> Path:
    """Return three sessions: in a folder, packed, and in a file named like a folder."""
    for number, name in enumerate(("p/a.jsonl", "p/q/b.ndjson", "c.jsonl.gz")):
        (log := maker(f"s{number}")).answer()
        log.write(tmp_path / "tree" / name)
    packed = tmp_path / "tree" / "c.jsonl.gz"
    packed.write_bytes(gzip.compress(packed.read_bytes()))
    (tmp_path / "tree" / "odd.jsonl").mkdir()
    (tmp_path / "tree" / "notes.txt").write_text("no log")
    return tmp_path / "tree"


def sessions(logs: Logs) -> set[str]:
    return {row.session for row in logs.rows}


def test_files_folders_and_patterns_are_read_each_once(tree: Path) -> None:
    """LOG-02: also with a circular link."""
    assert sessions(read_logs(tree)) == {"s0", "s1", "s2"}
    assert sessions(read_logs(tree / "p" / "a.jsonl")) == {"s0"}
    assert sessions(read_logs(f"{tree}/**/*.ndjson")) == {"s1"}
    assert len(read_logs(tree, tree / "p", f"{tree}/p/*.jsonl").rows) == 3
    (tree / "p" / "circle").symlink_to(tree)
    assert len(read_logs(tree).rows) == 3


def test_linked_folders_and_files_are_read_each_once(maker: Maker, run: Any, tmp_path: Path) -> None:
    """LOG-02: with two links to a folder, a link in a circle, and links that lead nowhere, which are told."""
    projects, outside = tmp_path / "claude" / "projects", tmp_path / "outside"
    projects.mkdir(parents=True)
    for number, path in enumerate((outside / "a.jsonl", outside / "a" / "subagents" / "agent-1.jsonl", tmp_path / "f")):
        log = maker(f"s{number}")
        log.answer()
        log.write(path)
    (projects / "-w-shop").symlink_to(outside)
    (projects / "-w-again").symlink_to(outside)
    (outside / "circle").symlink_to(projects)
    (projects / "b.jsonl").symlink_to(tmp_path / "f")

    assert sorted(row.session for row in read_logs().rows) == ["s0", "s1", "s2"]
    (projects / "-w-gone").symlink_to(tmp_path / "nowhere")
    report = run("report", "--format", "json")
    assert (report.code, report.json["total"]["requests"]) == (1, 3)
    assert "-w-gone: No such file" in report.err


def test_transcripts_are_found_where_the_cli_keeps_them(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOG-02"""
    (tree.parent / "one" / "projects").mkdir(parents=True)
    (tree.parent / "two").mkdir()
    tree.rename(tree.parent / "two" / "projects")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", f"{tree.parent / 'one'}, {tree.parent / 'two'}")

    assert sessions(read_logs()) == {"s0", "s1", "s2"}


@pytest.mark.parametrize(
    ("platform", "place"),
    [
        ("linux", ".config/Claude"),
        ("darwin", "Library/Application Support/Claude"),
        ("win32", "roaming/Claude"),
        ("win32", "AppData/Local/Packages/Claude_pzs8/LocalCache/Roaming/Claude"),
    ],
)
def test_sessions_that_claude_desktop_runs_are_found(
    maker: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, place: str
) -> None:
    """LOG-02: below each task's folder, whose audit log repeats the requests with unfinished counts."""
    tasks = tmp_path / place / "local-agent-mode-sessions" / "org" / "account"
    for task in ("local_1", "agent/local_2"):
        log = maker(task[-1])
        log.answer(f"msg_{task[-1]}", entrypoint="local-agent")
        log.write(tasks / task / ".claude" / "projects" / "p" / "s.jsonl")
    stream = maker("1")
    stream.stream("msg_1")
    stream.write(tasks / "local_1" / "audit.jsonl")
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, folder in (("HOME", tmp_path), ("USERPROFILE", tmp_path), ("APPDATA", tmp_path / "roaming")):
        monkeypatch.setenv(name, str(folder))

    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", platform)
        folders = default_folders()

    assert len(folders) == 2
    for logs in (read_logs(*folders), read_logs(tmp_path)):
        sessions = sorted((row.session, row.entrypoint, row.output) for row in logs.rows)
        assert sessions == [("1", "local-agent", 20), ("2", "local-agent", 20)]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("has_script", [True, False])
def test_the_agents_of_a_workflow_count_under_its_name(
    tmp_path: Path, strict: bool, ended: bool, has_script: bool
) -> None:
    """LOG-24, LOG-32: the journal has agents' results, which are not totals for the session."""
    shutil.copytree(TRANSCRIPTS / "workflow", tmp_path, dirs_exist_ok=True)
    [log] = tmp_path.glob("*.jsonl")
    if has_script:
        scripts = log.with_suffix("") / "workflows" / "scripts"
        scripts.mkdir(parents=True)
        for name in ("look-up-wf_98e58eb8-96d.js", "other-wf_12345678-123.js"):
            (scripts / name).touch()
    if not ended:
        lines = log.read_text("utf-8").splitlines(keepends=True)
        log.write_text("".join(line for line in lines if '"cost-state"' not in line), "utf-8")

    logs = read_logs(tmp_path, strict=strict)

    [served] = json.loads((tmp_path / "served.json").read_text("utf-8")).values()
    assert [sum(column) for column in zip(*(row[9:14] for row in logs.rows), strict=True)] == served
    assert Counter(row.agent_type for row in logs.rows) == {
        "": 4, "workflow look-up" if has_script else "workflow-subagent": 4
    }  # fmt: skip
    assert (len(logs.totals), logs.problems) == (int(ended), [])
    assert [one.agrees for one in reconcile(logs)] == [True] * ended


def test_a_source_that_is_not_there_is_said(tmp_path: Path) -> None:
    for sources, message in (([tmp_path / "gone.jsonl"], "gone"), ([tmp_path / "*.nothing"], "nothing")):
        with pytest.raises(LogsNotFoundError, match=message):
            read_logs(*sources)
    with pytest.raises(LogsNotFoundError, match="CLAUDE_CONFIG_DIR"):
        read_logs()


def test_a_file_that_cannot_be_read_is_a_problem_and_no_error(tree: Path) -> None:
    """LOG-04"""
    logs = read_logs(tree / "odd.jsonl" / ".." / "p" / "a.jsonl", "/proc/self/mem")

    assert len(logs.rows) == 1
    assert [(problem.path, problem.lost) for problem in logs.problems] == [("/proc/self/mem", True)]


@pytest.mark.parametrize("name", ["tool_call", "structured_output", "max_turns", "api_error"])
def test_a_recorded_stream_adds_up_to_its_result(name: str) -> None:
    """LOG-01, LOG-22"""
    path = LOGS / f"{name}.jsonl"
    stated = json.loads(path.read_text("utf-8").splitlines()[-1])

    rows = read_logs(path).priced()

    assert sum(row.output for row in rows) == sum(one["outputTokens"] for one in stated["modelUsage"].values())
    assert sum(row.cost or 0 for row in rows) == pytest.approx(stated["total_cost_usd"])


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("whole", [True, False])
def test_what_output_format_json_prints_is_read(tmp_path: Path, indent: int | None, whole: bool) -> None:
    """LOG-01: a single result, or all messages as a list; as printed, or indented by another program."""
    messages = [json.loads(line) for line in (LOGS / "tool_call.jsonl").read_text("utf-8").splitlines()]
    del messages[-1]["model_usage_since_last_result"]
    path = tmp_path / "out.json"
    path.write_text(json.dumps(messages if whole else messages[-1], indent=indent))

    logs = read_logs(path)

    assert (sum(row.input for row in logs.rows), sum(row.output for row in logs.rows)) == (200, 40)
    assert logs.problems == []


@pytest.mark.parametrize("last", [2, None], ids=["laid out", "on one line"])
def test_laid_out_results_one_after_another_are_read(tmp_path: Path, last: int | None) -> None:
    """LOG-01"""
    result = json.loads((LOGS / "tool_call.jsonl").read_text("utf-8").splitlines()[-1])
    path = tmp_path / "out.json"
    texts = [
        json.dumps(result | {"uuid": uuid, "session_id": uuid}, indent=indent)
        for uuid, indent in (("a", 2), ("b", last))
    ]
    path.write_text("\n".join([*texts, "{ broken"]))

    logs = read_logs(path)

    assert sum(row.output for row in logs.rows) == 80
    assert [problem.lost for problem in logs.problems] == [True]


# --- while it is being written


@pytest.mark.parametrize(("cut", "rows"), [(50, 1), (1, 2)])
def test_a_cut_last_line_waits_and_a_whole_line_is_read(log: Any, tmp_path: Path, cut: int, rows: int) -> None:
    """LOG-05"""
    path = tmp_path / "log.jsonl"
    log.answers("msg_1", "msg_2")
    path.write_bytes(log.text()[:-cut])

    logs = read_logs(path)

    assert (len(logs.rows), logs.problems, logs.unfinished) == (rows, [], [str(path)] if cut > 1 else [])


@pytest.mark.parametrize("make_cache", [Cache, cache_module.MemoryCache])
def test_reading_goes_on_wherever_it_stopped(log: Any, tmp_path: Path, make_cache: Callable[[], Cache]) -> None:
    """LOG-05, LOG-06: reading in any pieces gives the same result as reading at once."""
    path = tmp_path / "log.jsonl"
    for number in range(4):
        log.answer(f"msg_{number}")
        log.answer(f"msg_{number}", content=[{"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {}}])
    log.state({"claude-sonnet-5": (500, 100, 5000, 1000, 500, 0.5)})
    log.answer("msg_9")
    content, cache = log.text(), make_cache()
    logs = whole = read_logs(log.write())
    path.unlink()

    for end in range(0, len(content) + 97, 97):
        with path.open("ab") as file:
            file.write(content[path.stat().st_size : end])
        logs = read_logs(path, cache=cache)

    assert logs.rows == whole.rows
    assert (logs.problems, logs.unfinished) == ([], [])


def lines_with_repeats() -> list[bytes]:
    """A stream from the CLI with all kinds of records, in which a tool call comes twice."""
    lines = (LOGS / "structured_output.jsonl").read_bytes().splitlines(keepends=True)
    [call] = [line for line in lines if b'"type":"assistant"' in line]
    lines.insert(lines.index(call) + 1, call)
    return lines


@pytest.mark.parametrize("at", range(1, len(lines_with_repeats())))
def test_a_stream_read_in_two_steps_gives_the_same_as_at_once(tmp_path: Path, at: int) -> None:
    """LOG-06: the version, an answer's final counts that come later, and each tool call once."""
    lines, path, cache = lines_with_repeats(), tmp_path / "stream.jsonl", Cache()
    path.write_bytes(b"".join(lines[:at]))
    read_logs(path, cache=cache)
    with path.open("ab") as file:
        file.writelines(lines[at:])

    assert read_logs(path, cache=cache).rows == read_logs(path).rows


def test_what_was_read_before_is_not_read_again(log: Any) -> None:
    """LOG-06: from the second time on that a log has grown."""
    cache, read = Cache(), list[int]()
    for number in range(4):
        log.answer(f"msg_{number}")
        path = log.write()
        logs = read_logs(path, cache=cache, progress=lambda _, total: read.append(total))

        assert [row.key for row in logs.rows] == [f"msg_{one}" for one in range(number + 1)]

    line = len(json.dumps(log.lines[-1], separators=(",", ":"))) + 1
    assert read == [line, 2 * line, line, line]


@pytest.mark.parametrize("added", [0, 1])
@pytest.mark.parametrize("times", [1, 3])
def test_a_log_that_was_changed_in_its_middle_is_read_anew(run: Any, log: Any, added: int, times: int) -> None:
    """LOG-06: a count corrected, and a key masked, also if the log grew before and after."""
    log.user("my key is sk-secret")
    path = log.path
    for number in range(times):
        log.answer(f"msg_{number}", usage={"input_tokens": 9999, "output_tokens": 1})
        log.write()
        assert run("report", path, "--format", "json").json["total"]["input"] > 0
        assert run("search", "sk-secret", path).code == 0
    for _ in range(added):
        log.answer("msg_new", usage={"input_tokens": 9999, "output_tokens": 1})
    path.write_bytes(log.text().replace(b"9999", b"1234", 1).replace(b"sk-secret", b"sk-******"))

    total = run("report", path, "--format", "json").json["total"]["input"]

    assert total == 1234 + 9999 * (times + added - 1)
    assert run("search", "sk-secret", path).code == 1


@pytest.mark.parametrize("change", ["shorter", "other", "replaced"])
def test_a_file_that_is_not_what_it_was_is_read_anew(maker: Maker, tmp_path: Path, change: str) -> None:
    """LOG-06"""
    old, new, path = maker("old"), maker("new"), tmp_path / "log.jsonl"
    old.answers(*(f"msg_{number}" for number in range(2)))
    new.answers(*(f"msg_new_{number}" for number in range({"shorter": 1, "other": 3, "replaced": 3}[change])))
    cache = Cache()
    read_logs(old.write(path), cache=cache)
    if change == "replaced":
        path.unlink()
    new.write(path)

    assert sessions(read_logs(path, cache=cache)) == {"new"}


def test_what_is_kept_is_private(log: Any) -> None:
    cache = Cache()
    log.answer()
    read_logs(log.write(), cache=cache)

    entries = list(Path(cache.folder).iterdir())
    assert [stat.S_IMODE(entry.stat().st_mode) for entry in entries] == [0o600]
    assert stat.S_IMODE(os.stat(cache.folder).st_mode) == 0o700
    assert b"Hello" not in entries[0].read_bytes()


@pytest.mark.parametrize("damage", [b"", b"\0" * 40, b"odd", None])
def test_a_damaged_cache_is_no_cache(log: Any, damage: bytes | None) -> None:
    cache = Cache()
    log.answer()
    path = log.write()
    read_logs(path, cache=cache)
    for entry in Path(cache.folder).iterdir():
        entry.write_bytes(entry.read_bytes()[:-7] if damage is None else damage)

    assert len(read_logs(path, cache=cache).rows) == 1


def test_a_cache_that_cannot_be_written_fails_nothing(log: Any, tmp_path: Path) -> None:
    log.answer()
    (tmp_path / "file").write_text("in the way")

    assert len(read_logs(log.write(), cache=Cache(tmp_path / "file")).rows) == 1


# --- several processes


@pytest.fixture
def many(maker: Maker, tmp_path: Path) -> Path:
    """40 MB in 40 files: enough for a second process."""
    filler = "x" * 100_000
    for number in range(40):
        log = maker(f"s{number}")
        for _ in range(10):
            log.answer()
            log.user(filler)
        log.write(tmp_path / "many" / f"{number:02}.jsonl")
    return tmp_path / "many"


def test_several_processes_read_the_same(many: Path) -> None:
    """LOG-54"""
    steps: list[tuple[int, int]] = []

    alone = read_logs(many)
    together = read_logs(many, processes=3, progress=lambda done, total: steps.append((done, total)))

    assert together == alone
    assert len(together.rows) == 400
    assert steps[-1][0] == steps[-1][1] == together.size


def test_what_a_process_did_that_was_killed_is_done_again(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOG-54"""
    alone, parent = read_logs(many), os.getpid()

    def die(value: object, file: object) -> None:
        if os.getpid() != parent:
            os._exit(9)

    monkeypatch.setattr("marshal.dump", die)

    assert read_logs(many, processes=2) == alone
