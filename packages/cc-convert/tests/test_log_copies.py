"""Sums over copies of logs, whole or cut off, under other names, packed, or joined into a file."""

import gzip
import json
import os
import re
import shutil
from itertools import chain, zip_longest
from pathlib import Path
from typing import TypeAlias

import pytest

from cc_convert.logs import Cache, Logs, read_logs
from cc_convert.reconcile import reconcile

TRANSCRIPTS = Path(__file__).parent / "transcripts"
NAMES = sorted(path.parent.relative_to(TRANSCRIPTS).as_posix() for path in TRANSCRIPTS.rglob("served.json"))
# A fork repeats its parent's requests under the same ids; joined with the parent, the copies look like originals.
FORKED = {name for name in NAMES if name.rpartition("/")[2] in ("fork", "killed_process", "parallel_resumes")}
DAYS = 86400.0

Outcome: TypeAlias = tuple[dict[str, tuple[int, ...]], list[tuple[bool, int]]]


def outcome(logs: Logs) -> Outcome:
    """Return the counts of each session, and the comparisons with the CLI's totals."""
    columns = {session: [row[9:14] for row in logs.rows if row.session == session] for session in sessions(logs)}
    counts = {session: tuple(map(sum, zip(*rows, strict=True))) for session, rows in columns.items()}
    return counts, sorted((comparison.agrees, comparison.doubtful) for comparison in reconcile(logs))


def sessions(logs: Logs) -> set[str]:
    return {row.session for row in logs.rows}


@pytest.fixture(params=NAMES)
def source(request: pytest.FixtureRequest) -> Path:
    return TRANSCRIPTS / request.param


def files_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jsonl"))


@pytest.mark.parametrize("copy", ["a", "z"], ids=["first", "last"])
def test_a_copy_changes_no_sum_however_old_or_short(source: Path, tmp_path: Path, copy: str) -> None:
    """LOG-35: beside the live folder, cut off at any place, also within a line, with an older or a newer time."""
    reference = outcome(read_logs(source))
    shutil.copytree(source, tmp_path / "m")
    for eighths in range(1, 9):
        folder = shutil.copytree(source, tmp_path / copy, dirs_exist_ok=True)
        for path in files_of(folder):
            content = path.read_bytes()
            path.write_bytes(content[: len(content) * eighths // 8])
            time = path.stat().st_mtime + (DAYS if eighths % 2 else -DAYS)
            os.utime(path, (time, time))

        assert outcome(read_logs(tmp_path)) == reference


def test_packed_logs_alone_or_beside_plain_logs_give_the_same_sums(source: Path, tmp_path: Path) -> None:
    """LOG-35, LOG-20: for each recording."""
    reference = outcome(read_logs(source))
    archive = shutil.copytree(source, tmp_path / "packed")
    for path in files_of(archive):
        path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()

    assert outcome(read_logs(archive)) == reference
    shutil.copytree(source, tmp_path / "plain")
    assert outcome(read_logs(tmp_path)) == reference


def test_a_line_that_is_still_being_written_changes_no_sum(source: Path, tmp_path: Path) -> None:
    """LOG-35: in each file of a recording."""
    reference = outcome(read_logs(source))
    shutil.copytree(source, tmp_path, dirs_exist_ok=True)
    for path in files_of(tmp_path):
        with path.open("ab") as file:
            file.write(b'{"parentUuid":"1","isSidechain":false,"type":"assistant","message":{"id":"msg_x","usa')

    logs = read_logs(tmp_path)

    assert outcome(logs) == reference
    assert len(logs.unfinished) == len(files_of(source))


def test_logs_that_grow_between_reports_give_the_same_sums(source: Path, tmp_path: Path) -> None:
    """LOG-06, LOG-35: read three times with a cache, cut within lines."""
    reference, cache = outcome(read_logs(source)), Cache(tmp_path / "cache")
    logs = read_logs(source)
    for eighths in (3, 6, 8):
        for path in files_of(source):
            target = tmp_path / "logs" / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            content = path.read_bytes()
            with target.open("ab") as file:
                file.write(content[target.stat().st_size : len(content) * eighths // 8])
        logs = read_logs(tmp_path / "logs", cache=cache)

    assert outcome(logs) == reference


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in FORKED])
def test_joined_files_give_the_same_sums(name: str, tmp_path: Path, backwards: bool) -> None:
    """LOG-35: several sessions and their sub-agents in a file, also with a sub-agent after its session's total."""
    source = TRANSCRIPTS / name
    reference = outcome(read_logs(source))
    paths = files_of(source)
    content = [path.read_bytes() for path in (reversed(paths) if backwards else paths)]
    (tmp_path / "joined.jsonl").write_bytes(b"".join(content))

    assert outcome(read_logs(tmp_path)) == reference
    assert outcome(read_logs(tmp_path, source)) == reference


@pytest.mark.parametrize("first", ["casebook/resume", "casebook/compaction", "workflow"])
@pytest.mark.parametrize("second", ["casebook/sub_agent", "clock/before_a_resume_-2", "clock/after_a_start_-10"])
def test_unrelated_sessions_in_one_file_stay_apart(first: str, second: str, tmp_path: Path) -> None:
    """LOG-35: in either order, so that times fall where the second session begins."""
    reference: dict[str, tuple[int, ...]] = {}
    contents: list[bytes] = []
    for mark, name in (b"a", first), (b"b", second):
        reference |= outcome(read_logs(TRANSCRIPTS / name))[0]
        # The recordings number their requests alike.
        content = b"".join(path.read_bytes() for path in files_of(TRANSCRIPTS / name))
        contents.append(re.sub(rb'"(msg_|req_)', rb'"\1' + mark, content))
    for order in (contents, contents[::-1]):
        (tmp_path / "joined.jsonl").write_bytes(b"".join(order))
        counts, comparisons = outcome(read_logs(tmp_path))

        assert counts == reference
        assert all(agrees and not doubtful for agrees, doubtful in comparisons)


@pytest.mark.parametrize("name", [name for name in NAMES if "fork" in name or name in FORKED])
def test_a_difference_of_interleaved_sessions_is_told(name: str, tmp_path: Path) -> None:
    """LOG-35, LOG-30: parent and fork alternate line by line, in either order."""
    source = TRANSCRIPTS / name
    reference, _ = outcome(read_logs(source))
    files = [path.read_bytes().splitlines(keepends=True) for path in files_of(source)]
    for lines in (zip_longest(*files, fillvalue=b""), zip_longest(*files[::-1], fillvalue=b"")):
        (tmp_path / "merged.jsonl").write_bytes(b"".join(chain.from_iterable(lines)))
        counts, comparisons = outcome(read_logs(tmp_path))

        assert counts == reference or any(doubtful or not agrees for agrees, doubtful in comparisons)


@pytest.mark.parametrize("name", sorted(FORKED))
def test_a_difference_of_a_fork_joined_with_its_parent_is_told(name: str, tmp_path: Path) -> None:
    """LOG-35, LOG-30: the sums are never wrong without a finding."""
    source = TRANSCRIPTS / name
    reference, _ = outcome(read_logs(source))
    for paths in (files_of(source), files_of(source)[::-1]):
        (tmp_path / "joined.jsonl").write_bytes(b"".join(path.read_bytes() for path in paths))
        counts, comparisons = outcome(read_logs(tmp_path))

        assert counts == reference or not all(agrees for agrees, _ in comparisons)


def test_each_recording_has_all_that_the_api_served(source: Path) -> None:
    """LOG-35, LOG-32: or `reconcile` says how many tokens may count twice."""
    served = {
        session: tuple(counts) for session, counts in json.loads((source / "served.json").read_text("utf-8")).items()
    }
    counts, comparisons = outcome(read_logs(source))

    assert counts == served or any(doubtful or not agrees for agrees, doubtful in comparisons)
