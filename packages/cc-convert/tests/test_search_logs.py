"""`cc-convert search`: texts in the cache, logs with any content, processes."""

import gzip
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cc_convert.log_files.cache import Cache
from cc_convert.search.find import Query, SearchResult, find_passages, passage_of

Run: TypeAlias = Callable[..., Any]


def search(path: Path, text: str, cache: Cache | None = None) -> SearchResult:
    return find_passages({str(path): ""}, Query(text), cache=cache)


def test_a_search_finds_what_was_written_since(log: Any) -> None:
    """LOG-84, LOG-05: a line's end that is still being written is read when it is complete."""
    cache = Cache()
    log.user("needle " + "x" * 1000 + " straw " + "x" * 1000)
    path = log.write()
    search(path, "needle", cache)
    content = path.read_bytes()
    log.user("second needle")
    grown = log.text()[len(content) :]
    path.write_bytes(content + grown[:-20])
    assert search(path, "needle", cache).total == 1
    with path.open("ab") as file:
        file.write(grown[-20:])

    result = search(path, "needle", cache)

    assert (result.total, result.lost) == (2, 0)
    assert (search(path, "straw", cache).total, search(path, "second", cache).total) == (1, 1)
    passage = passage_of(result.matches[0])
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

    assert len(run("search", "needle", session, "--format", "json").json) == 3


# --- logs with any content


def test_damaged_and_huge_lines_are_searched_as_far_as_they_go(run: Run, log: Any) -> None:
    """LOG-85, LOG-04"""
    log.user("needle one")
    before = log.text()
    log.lines.clear()
    log.user([{"type": "tool_result", "tool_use_id": "t", "content": "x" * 8_000_000 + " needle two"}])
    deep = b'{"type":"user","sessionId":"s1","message":{"content":' + b"[" * 200_000 + b"]" * 200_000 + b"}}\n"
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
    """LOG-80, LOG-85: also a cut-off log, as far as it can be unpacked."""
    log.user("first needle")
    log.user("second needle " + os.urandom(3000).hex())
    path = tmp_path / "log.jsonl.gz"
    content = gzip.compress(log.text())
    path.write_bytes(content[: len(content) - cut])

    records = run("search", "first needle", path, "--format", "json").json

    assert [one["excerpt"] for one in records] == [["first needle"]]


def test_a_log_that_cannot_be_opened_is_said(session: Path, tmp_path: Path) -> None:
    """LOG-85, LOG-04"""
    (tmp_path / "logs" / "folder.jsonl").mkdir()
    result = find_passages({str(tmp_path / "logs" / "folder.jsonl"): "", str(tmp_path / "gone.jsonl"): ""}, Query("x"))

    assert [reason.partition(": ")[2] for reason in result.failed] == ["Is a directory", "No such file or directory"]


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
    """LOG-80: in any language, in upper or lower case."""
    start = data.draw(st.integers(0, len(prompt) - 1))
    part = prompt[start : data.draw(st.integers(start + 1, len(prompt)))]
    line = {"type": "user", "sessionId": "s1", "message": {"role": "user", "content": prompt}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        path.write_text(json.dumps(line), encoding="utf-8")

        assert search(path, part).total == 1


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

    assert counts[0] == counts[1]


def calls(function: Callable[[], object]) -> int:
    """Count the functions that a function calls, in Python and in C."""
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
