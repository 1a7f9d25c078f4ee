"""`cc-convert search`: matches in logs, their places, and the command to resume the session."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Maker: TypeAlias = Callable[..., Any]
Run: TypeAlias = Callable[..., Any]
SESSION = "0123abcd-0123-4123-8123-0123456789ab"


def roles(run: Run, *words: object) -> list[str]:
    return [one["role"] for one in run("search", *words, "--format", "json").json]


@pytest.mark.parametrize(
    ("text", "matches"),
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
    run: Run, session: Path, text: str, matches: list[str], more: list[str]
) -> None:
    """LOG-80: word parts, in upper or lower case, without JSON's escapes."""
    assert roles(run, text, session, *more) == matches
    assert roles(run, text, session, *more) == matches


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
    ("words", "error"),
    [
        (["--regex", "(", "."], "'(' is not a regular expression"),
        (["", "."], "empty"),
        (["x", "nowhere"], "no such file: nowhere"),
        (["x", "-"], "standard input"),
        (["x", ".", "--since", "never"], "never"),
        (["x", ".", "--limit", "-1"], "-1"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(run: Run, tmp_path: Path, words: list[str], error: str) -> None:
    """LOG-47, LOG-80"""
    done = run("search", *[tmp_path if word == "." else word for word in words])

    assert (done.code, done.out) == (2, "")
    assert error in done.err


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


def test_the_folder_to_resume_in_is_that_of_the_start(run: Run, log: Any) -> None:
    """LOG-81: a session may go on in other folders."""
    log.user("Hi")
    log.user("needle", cwd="/home/user/p/deep")

    [match] = run("search", "needle", log.write(), "--format", "json").json

    assert (match["project"], match["folder"]) == ("/home/user/p/deep", "/home/user/p")


@pytest.mark.parametrize("name", ["--dangerous", "x; rm -rf /", "$(id)", "a\nb", "", "\x1b[2J"])
def test_no_log_gives_a_command_of_its_own(run: Run, maker: Maker, name: str) -> None:
    """LOG-83: nor moves a terminal's cursor."""
    log = maker(name, project="/x'; id #\x1b[2J")
    log.user("needle \x1b]0;title\x07")
    good = maker(SESSION, project="/x'; id #")
    good.user("needle")
    log.lines += good.lines

    done = run("search", "needle", log.write())

    commands = [line.partition("resume: ")[2] for line in done.out.splitlines() if "resume: " in line]
    assert [shlex.split(command) for command in commands] == [["cd", "/x'; id #", "&&", "claude", "--resume", SESSION]]
    assert "\x1b" not in done.out and "\x07" not in done.out


@pytest.mark.parametrize(
    ("written", "sought"),
    [
        ("caf\u00e9", "cafe\u0301"), ("cafe\u0301", "CAF\u00c9"), ("Stra\u00dfe", "STRASSE"),
        ("\u0130stanbul", "istanbul"), ("istanbul", "\u0130STANBUL"),
    ],
)  # fmt: skip
def test_one_text_in_two_forms_is_one(run: Any, log: Any, written: str, sought: str) -> None:
    """LOG-80, LOG-74: in search, filters and alerts."""
    log.project = f"/w/{written}"
    log.user(f"we meet at {written}")
    log.answer()
    path = log.write()

    assert run("search", sought, path).code == 0
    assert run("report", path, "--project", sought, "--format", "json").json["total"]["requests"] == 1
    assert "is more than" in run("report", path, "--alert", f"project:*/{sought}>$0.0001").err
