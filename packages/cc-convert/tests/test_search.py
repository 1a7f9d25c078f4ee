"""`cc-convert search`: a text in logs, where it stands, and how to go on with its session."""

import gzip
import json
import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cc_convert.cache import Cache
from cc_convert.search.find import Found, Query, find_passages, passage_of

Maker: TypeAlias = Callable[..., Any]
Run: TypeAlias = Callable[..., Any]
SESSION = "0123abcd-0123-4123-8123-0123456789ab"


@pytest.fixture
def session(maker: Maker, tmp_path: Path) -> Path:
    """A session with a prompt, an answer, a tool call and its result, and the transcript of a sub-agent."""
    log = maker(SESSION, project="/home/user/my project")
    labels = {"gitBranch": "main", "entrypoint": "cli", "version": "2.1.329"}
    log.user("Mend the needle pool", **labels)
    log.answer(content=[{"type": "thinking", "thinking": "Where may the haystack be?"}], **labels)
    log.answer(content=[{"type": "text", "text": "I look for\nthe Needle\nin it."}], **labels)
    given = {"command": 'grep -n "needle" *.py', "edits": [{"old": "a\tb"}, {"new": "c\nd"}]}
    log.answer(content=[{"type": "tool_use", "id": "t1", "name": "Bash", "input": given}], **labels)
    log.user(
        [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "pool.py:7"}]}], **labels
    )
    log.lines.append({"type": "ai-title", "aiTitle": "Pool repair", "sessionId": SESSION})
    log.write(tmp_path / "logs" / f"{SESSION}.jsonl")
    agent = maker(SESSION, project="/home/user/my project")
    agent.user("Look for straw", agentId="a1", isSidechain=True)
    agent.write(tmp_path / "logs" / SESSION / "subagents" / "agent-a1.jsonl")
    return tmp_path / "logs"


def roles(run: Run, *words: object) -> list[str]:
    return [one["role"] for one in run("search", *words, "--format", "json").json]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("needle", ["call", "answer", "prompt"]),
        ("haystack", ["thinking"]),
        ("bash", ["call"]),
        ('grep -n "needle"', ["call"]),
        ("old: a\tb", ["call"]),
        ("new: c\nd", ["call"]),
        ("POOL.PY:7", ["result"]),
        ("pool repair", ["title"]),
        ("straw", ["prompt"]),
        ("py", ["result", "call"]),
        ("elsewhere", []),
        ("needle pool.*", []),
    ],
)
@pytest.mark.parametrize("more", [[], ["--no-cache"]])
def test_every_kind_of_passage_is_found_as_it_reads(
    run: Run, session: Path, text: str, found: list[str], more: list[str]
) -> None:
    """LOG-80: parts of words, in any letters, without the marks of JSON."""
    assert roles(run, text, session, *more) == found
    assert roles(run, text, session, *more) == found


def test_a_match_tells_where_it_stands_and_how_to_go_on(run: Run, session: Path) -> None:
    """LOG-81"""
    [match] = run("search", "look for\nthe", session, "--format", "json", "--tz", "UTC").json
    text = run("search", "straw", session, "--tz", "UTC")

    assert {name: match[name] for name in ("session", "title", "time", "project", "branch", "line", "excerpt")} == {
        "session": SESSION, "title": "Pool repair", "time": "2026-11-20T10:03:00+00:00",
        "project": "/home/user/my project", "branch": "main", "line": 3, "excerpt": ["I look for"],
    }  # fmt: skip
    assert match["resume"] == f"cd '/home/user/my project' && claude --resume {SESSION}"
    assert (text.code, text.err) == (0, "")
    assert text.out.splitlines() == [
        "Pool repair",
        f"  /home/user/my project · session {SESSION}",
        "  2026-11-20 10:01:00 · prompt · sub-agent a1",
        "    Look for straw",
        f"  resume: {match['resume']}",
    ]


def test_lines_around_a_match_are_shown_when_asked_for(run: Run, log: Any) -> None:
    """LOG-81"""
    log.user(
        "\n".join(["one", "two", "needle", "four", "five", "six", "needle", "eight", "x" * 300 + "needle", "needle"])
    )
    path = log.write()

    def excerpt(*words: str) -> list[str]:
        return run("search", "needle", path, "--format", "json", *words).json[0]["excerpt"]

    assert excerpt()[:2] == ["needle", "needle"]
    assert excerpt()[2].startswith("…xxx") and excerpt()[2].endswith("xxxneedle")
    assert excerpt()[3] == "(1 more lines)"
    assert excerpt("-C", "1")[:7] == ["two", "needle", "four", "--", "six", "needle", "eight"]


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (["--role", "prompt"], 2),
        (["--role", "prompt", "--role", "answer"], 3),
        (["--session", SESSION[:6]], 3),
        (["--session", "zzz"], 1),
        (["--project", "my proj"], 3),
        (["--branch", "main"], 3),
        (["--branch", "dev"], 1),
        (["--host", "laptop"], 1),
        (["--entrypoint", "cli"], 3),
        (["--cli-version", "2.1.*"], 3),
        (["--model", "sonnet"], 3),
        (["--model", "opus"], 0),
        (["--since", "2026-11-21"], 1),
        (["--until", "2026-11-20"], 3),
        (["--until", "2026-11-20T10:01:30"], 1),
    ],
)
def test_filters_are_those_of_reports(
    run: Run, session: Path, maker: Maker, tmp_path: Path, words: list[str], number: int
) -> None:
    """LOG-82: a model counts for the whole session."""
    other = maker("zzz", start="2026-11-21T10:00:00Z", project="/other")
    other.user("A needle of another machine", gitBranch="dev")
    other.write(tmp_path / "other" / "zzz.jsonl")

    sources = [session, "--from", f"laptop:{tmp_path / 'other'}", "--tz", "UTC"]

    assert len(roles(run, "needle", *sources, *words)) == number


def test_a_regular_expression_is_searched_for_in_any_letters(run: Run, session: Path) -> None:
    """LOG-80: line by line, as other tools do."""
    assert roles(run, "--regex", r"^the ne+dle$", session) == ["answer"]
    assert roles(run, "-E", r"THE NE+DLE\b", session) == ["answer", "prompt"]
    assert roles(run, "-E", r"\S+\.py:\d$", session) == ["result"]
    assert roles(run, "-E", r"\x4eeedle p", session) == ["prompt"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--regex", "(", "."], "'(' is no regular expression"),
        (["", "."], "empty"),
        (["x", "nowhere"], "nowhere is not there"),
        (["x", "-"], "standard input"),
        (["x", ".", "--since", "never"], "never"),
        (["x", ".", "--limit", "-1"], "-1"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(run: Run, tmp_path: Path, words: list[str], said: str) -> None:
    """LOG-47, LOG-80"""
    done = run("search", *[tmp_path if word == "." else word for word in words])

    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_nothing_found_is_told_by_the_exit_code(run: Run, session: Path) -> None:
    """LOG-47"""
    done = run("search", "elsewhere", session)

    assert (done.code, done.out, done.err) == (1, "", "nothing found\n")


def test_the_newest_matches_are_shown_and_the_others_counted(run: Run, log: Any) -> None:
    """LOG-81"""
    for number in range(5):
        log.user(f"needle {number}")
    path = log.write()

    done = run("search", "needle", path, "--limit", "2")

    assert [line.strip() for line in done.out.splitlines() if "    " in line] == ["needle 3", "needle 4"]
    assert done.err == "note: the newest 2 of 5 matches; --limit 0 shows all\n"
    assert len(roles(run, "needle", path, "--limit", "0")) == 5


def test_what_a_fork_repeats_is_found_once(run: Run, maker: Maker, tmp_path: Path) -> None:
    """LOG-80, LOG-20"""
    for name in ("s1", "s2"):
        log = maker(name)
        log.user("needle", uuid="u1")
        log.user("needle", uuid="u1")
        log.answer(uuid="u2", content=[{"type": "text", "text": "needle"}, {"type": "text", "text": "needle two"}])
        log.write(tmp_path / "logs" / f"{name}.jsonl")

    assert roles(run, "needle", tmp_path / "logs") == ["answer", "answer", "prompt"]


def test_a_stream_has_the_folder_and_the_version_of_its_start(run: Run, log: Any) -> None:
    """LOG-82"""
    start = {"type": "system", "subtype": "init", "session_id": "s1", "cwd": "/work", "claude_code_version": "2.1.329"}
    log.lines.append(start)
    log.stream("msg_1")

    [match] = run("search", "hello", log.write(), "--format", "json").json

    assert (match["folder"], match["version"]) == ("/work", "2.1.329")


def test_the_folder_to_resume_in_is_that_of_the_start(run: Run, log: Any) -> None:
    """LOG-81: a session may go on in other folders."""
    log.user("Hi")
    log.user("needle", cwd="/home/user/p/deep")

    [match] = run("search", "needle", log.write(), "--format", "json").json

    assert (match["project"], match["folder"]) == ("/home/user/p/deep", "/home/user/p")


@pytest.mark.parametrize("name", ["--dangerous", "x; rm -rf /", "$(id)", "a\nb", "", "\x1b[2J"])
def test_no_log_gives_a_command_of_its_own(run: Run, maker: Maker, name: str) -> None:
    """LOG-83: nor moves the cursor of a terminal."""
    log = maker(name, project="/x'; id #\x1b[2J")
    log.user("needle \x1b]0;title\x07")
    good = maker(SESSION, project="/x'; id #")
    good.user("needle")
    log.lines += good.lines

    done = run("search", "needle", log.write())

    commands = [line.partition("resume: ")[2] for line in done.out.splitlines() if "resume: " in line]
    assert [shlex.split(command) for command in commands] == [["cd", "/x'; id #", "&&", "claude", "--resume", SESSION]]
    assert "\x1b" not in done.out and "\x07" not in done.out


# --- what is kept


def search(path: Path, text: str, cache: Cache | None = None) -> Found:
    return find_passages({str(path): ""}, Query(text), cache=cache)


def test_a_search_reads_again_only_what_was_written_since(log: Any) -> None:
    """LOG-84, LOG-05: the end of a line that is still being written is read when it is there."""
    cache = Cache()
    log.user("needle " + "x" * 1000 + " straw " + "x" * 1000)
    path = log.write()
    search(path, "needle", cache)
    # In the middle of what was read nobody looks again.
    content = path.read_bytes().replace(b"straw", b"STICK")
    log.user("second needle")
    grown = log.text()[len(content) :]
    path.write_bytes(content + grown[:-20])
    assert search(path, "needle", cache).total == 1
    with path.open("ab") as file:
        file.write(grown[-20:])

    found = search(path, "needle", cache)

    assert (found.total, found.lost) == (2, 0)
    assert (search(path, "straw", cache).total, search(path, "second", cache).total) == (1, 1)
    passage = passage_of(found.matches[0])
    assert passage and passage.text == "second needle"


def test_what_did_not_change_is_not_opened_again(log: Any) -> None:
    """LOG-84"""
    cache = Cache()
    log.user("needle")
    path = log.write()
    search(path, "needle", cache)
    content, status = path.read_bytes(), path.stat()
    path.write_bytes(content.replace(b"needle", b"noodle"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert (search(path, "needle", cache).total, search(path, "noodle", cache).total) == (1, 0)


def test_a_log_that_was_replaced_or_cut_is_read_anew(log: Any) -> None:
    """LOG-84, LOG-06"""
    cache = Cache()
    log.user("needle " + "x" * 1000)
    path = log.write()
    search(path, "needle", cache)
    path.write_bytes(path.read_bytes().replace(b"needle", b"noodle"))

    assert (search(path, "needle", cache).total, search(path, "noodle", cache).total) == (0, 1)
    path.write_bytes(b"")
    assert search(path, "noodle", cache).total == 0


def test_texts_go_away_with_their_log_and_on_demand(run: Run, session: Path, log: Any) -> None:
    """LOG-84"""
    log.user("needle")
    path, folder = log.write(), Path(Cache().folder)
    run("search", "needle", session, path)
    assert len(list(folder.glob("*.text"))) == 3
    path.unlink()

    run("search", "needle", session)

    assert len(list(folder.glob("*.text"))) == 2
    assert run("doctor", "--clear-cache", session).code == 0
    assert list(folder.glob("*.text")) == []


def test_only_their_owner_can_read_texts(run: Run, session: Path) -> None:
    """LOG-83"""
    before = os.umask(0)
    try:
        run("search", "needle", session)
    finally:
        os.umask(before)

    folder = Path(Cache().folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("damage", [b"", b"\0\0", b"\xff" * 40, b"\0\0\0\x05hello"])
def test_a_damaged_cache_is_made_anew(run: Run, session: Path, damage: bytes) -> None:
    """LOG-84"""
    run("search", "needle", session)
    for path in Path(Cache().folder).glob("*.text"):
        path.write_bytes(damage)

    assert len(roles(run, "needle", session)) == 3


def test_a_cache_that_cannot_be_written_is_done_without(
    run: Run, session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LOG-84"""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CC_CONVERT_CACHE", str(tmp_path / "file"))

    assert len(roles(run, "needle", session)) == 3


# --- logs of any content


def test_damaged_and_huge_lines_are_searched_as_far_as_they_go(run: Run, log: Any) -> None:
    """LOG-85, LOG-04"""
    log.user("needle one")
    before = log.text()
    log.lines.clear()
    log.user([{"type": "tool_result", "tool_use_id": "t", "content": "x" * 8_000_000 + " needle two"}])
    deep = b'{"type":"user","sessionId":"s1","message":{"content":' + b"[" * 5000 + b"]" * 5000 + b"}}\n"
    cut = b'{"type":"user","message":{"content":"needle three\n'
    odd = b'{"type":"user","sessionId":"s1","message":{"content":"needle \xff\0 four \\ud800"}}\n'
    log.path.write_bytes(before + deep + cut + b"\0\0\0\n\n[1]\n7\n" + log.text() + odd)

    done = run("search", "needle", log.path, "--format", "json")

    assert done.code == 0
    assert {(one["role"], one["excerpt"][0].lstrip("x…")) for one in done.json} == {
        ("prompt", "needle one"),
        ("unreadable", cut.decode().strip()),
        ("result", " needle two"),
        ("prompt", "needle \ufffd four ?"),
    }
    assert done.err == "note: lines that could not be read, and were searched as they stand: 5\n"


@pytest.mark.parametrize("cut", [0, 9])
def test_a_packed_log_is_searched(run: Run, log: Any, tmp_path: Path, cut: int) -> None:
    """LOG-80, LOG-85: also one that was cut off, as far as it can be unpacked."""
    log.user("first needle")
    log.user("second needle " + os.urandom(3000).hex())
    path = tmp_path / "log.jsonl.gz"
    content = gzip.compress(log.text())
    path.write_bytes(content[: len(content) - cut])

    found = run("search", "first needle", path, "--format", "json").json

    assert [one["excerpt"] for one in found] == [["first needle"]]


def test_a_log_that_cannot_be_opened_is_said(run: Run, session: Path, tmp_path: Path) -> None:
    """LOG-85, LOG-04"""
    (tmp_path / "logs" / "folder.jsonl").mkdir()
    found = find_passages({str(tmp_path / "logs" / "folder.jsonl"): "", str(tmp_path / "gone.jsonl"): ""}, Query("x"))

    assert [reason.partition(": ")[2] for reason in found.failed] == ["Is a directory", "No such file or directory"]


def test_a_log_that_went_away_meanwhile_is_no_failure(log: Any) -> None:
    """LOG-85"""
    log.user("needle")
    path = log.write()
    [match] = search(path, "needle").matches
    path.write_bytes(b"{}\n")
    assert passage_of(match) is None
    path.unlink()
    assert passage_of(match) is None


@given(st.lists(st.binary(max_size=300), max_size=6), st.text(min_size=1, max_size=3))
def test_any_bytes_can_be_searched(lines: list[bytes], text: str) -> None:
    """LOG-85"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        path.write_bytes(b"\n".join(lines))
        for query in (Query(text), Query(".", regex=True)):
            for match in find_passages({str(path): ""}, query).matches:
                assert passage_of(match) is not None


@given(st.text(min_size=1, max_size=40), st.data())
def test_any_part_of_a_prompt_is_found(prompt: str, data: st.DataObject) -> None:
    """LOG-80: in any language, in capital letters or not."""
    start = data.draw(st.integers(0, len(prompt) - 1))
    part = prompt[start : data.draw(st.integers(start + 1, len(prompt)))]
    line = {"type": "user", "sessionId": "s1", "message": {"role": "user", "content": prompt}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        path.write_text(json.dumps(line), encoding="utf-8")

        assert search(path, part).total == 1


# --- processes


def test_several_processes_find_the_same(maker: Maker, tmp_path: Path) -> None:
    """LOG-84: and leave none behind."""
    for number in range(6):
        log = maker(f"s{number}")
        log.user("needle " + "x" * 2_000_000)
        log.write(tmp_path / "logs" / f"{number}.jsonl")
    code = (
        "import sys, os; from cc_convert.cli import main; code = main(sys.argv[1:]); sys.stdout.flush()\n"
        "try: os.waitpid(-1, os.WNOHANG)\n"
        "except ChildProcessError: sys.exit(code)\n"
        "sys.exit(9)"
    )
    words = ["search", "needle", str(tmp_path / "logs"), "--format", "json", "--jobs", "3"]

    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=40)

    assert (done.returncode, len(json.loads(done.stdout))) == (0, 6)
    assert len(list(Path(Cache().folder).glob("*.text"))) == 6


# --- speed


def test_a_repeated_search_takes_no_longer_for_a_longer_log(log: Any) -> None:
    """LOG-86: counted in calls, which do not depend on the machine."""
    cache, counts = Cache(), list[int]()
    for _ in range(2):
        for _ in range(300):
            log.user("Mend the pool")
        path = log.write()
        search(path, "needle", cache)
        counts.append(calls(lambda path=path: search(path, "needle", cache)))

    assert counts[0] == counts[1] < 200


def calls(function: Callable[[], object]) -> int:
    """The number of functions that a function calls, of Python and of C."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count
