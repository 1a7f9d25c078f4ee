"""The benchmarks' figures and command line, with artificial benchmarks and with a real benchmark."""

import json
import re
from pathlib import Path

import pytest

from bench.__main__ import SUITES
from bench.arena import find_peers
from bench.harness import (
    NOTE,
    Bound,
    Effort,
    Figure,
    Group,
    Suite,
    alternated,
    main,
    number,
    quantile,
    ratios_of_neighbours,
    rotated,
    show,
)


def test_a_quantile_is_the_value_that_a_share_does_not_exceed() -> None:
    assert quantile([float(value) for value in range(10, 0, -1)], 0.9) == 9
    assert [quantile([1.0, 2.0, 3.0], share) for share in (0, 0.5, 1)] == [1, 2, 3]


def test_ratios_are_taken_between_neighbours_and_spread_over_the_longer_sequence() -> None:
    assert ratios_of_neighbours([2.0, 40.0, 6.0], [1.0, 20.0, 2.0]) == [2, 2, 3]
    assert ratios_of_neighbours([10.0, 30.0], [1.0, 9.0, 3.0, 9.0]) == [10, 10]


async def test_contenders_alternate_and_warm_up_rounds_do_not_count() -> None:
    done: list[str] = []

    async def first() -> None:
        done.append("first")

    async def second() -> None:
        done.append("second")

    times = await alternated({"first": first, "second": second}, times=3, warm_up=2)

    assert {name: len(taken) for name, taken in times.items()} == {"first": 3, "second": 3}
    assert (done.count("first"), done.count("second")) == (5, 5)
    assert [rotated("abc", by)[0] for by in range(-1, 4)] == ["c", "a", "b", "c", "a"]


@pytest.mark.parametrize(
    ("bound", "is_met"),
    [
        (None, None),
        (Bound(4.0), True),
        (Bound(3.9), False),
        (Bound(4.0, least=True), True),
        (Bound(4.1, least=True), False),
        (Bound(2.0, of="ratio"), True),
        (Bound(1.9, of="ratio"), False),
    ],
)
def test_a_bound_is_met_up_to_its_limit(bound: Bound | None, is_met: bool | None) -> None:
    values = {"floor": [1.0, 2.0, 3.0], "ours": [2.0, 4.0, 9.0]}
    floor, ours = Group("group").figures(values, "floor", {"ours": bound} if bound else None)
    assert (floor.ratio, floor.is_met, ours.ratio, ours.median, ours.is_met) == (None, None, 2, 4, is_met)


@pytest.mark.parametrize(
    ("value", "text"), [(0.01234, "0.012"), (1.234, "1.23"), (12.34, "12.3"), (12345.6, "12,346"), (-1642.0, "-1,642")]
)
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_the_table_shows_a_ratio_and_a_missed_bound(capsys: pytest.CaptureFixture[str]) -> None:
    floor = Figure("Warm run", "AnthropicModel", "ms", 1, 10.0, 12.0)
    missed = Figure("Warm run", "Claude[red]", "ms", 9, 25.0, 31.0, 2.5, Bound(2.0, of="ratio"))
    show([floor, missed])
    printed = capsys.readouterr().out

    assert re.search(r"AnthropicModel +10\.0 ms +1 *\n", printed)
    assert re.search(r"Claude\[red\] +25\.0 ms +31\.0 +9 +2\.50 +at most 2 times the floor, MISSED *\n", printed)
    show([missed], judged=False)
    assert "MISSED" not in capsys.readouterr().out


def suites(bound: Bound | None = None) -> tuple[Suite, Suite]:
    async def measure_good(effort: Effort) -> list[Figure]:
        peer = {"peer": [9.0]} if effort.peers else {}
        values = {"floor": [1.0], "ours": [float(effort.times(3, 2))], **peer}
        return Group("Title").figures(values, "floor", {"ours": bound} if bound else None)

    async def measure_broken(effort: Effort) -> list[Figure]:
        raise RuntimeError("it broke")

    return Suite("good", "It works", measure_good), Suite("broken", "It does not", measure_broken)


def peer() -> tuple[bool, str]:
    return True, "With the peer."


@pytest.mark.parametrize(
    ("bound", "words", "status", "expected"),
    [
        (Bound(3.0), [], 0, "All 1 bounds are met."),
        (Bound(2.9, of="ratio"), [], 1, "Missed: Title: ours (at most 2.9 times the floor)."),
        (Bound(0.0), ["--quick"], 0, "Title"),
        (None, ["--peer"], 0, "With the peer."),
    ],
    ids=["kept", "missed", "quick", "peer"],
)
def test_only_a_missed_bound_of_a_full_run_exits_with_1(
    bound: Bound | None, words: list[str], status: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(suites(bound), peer, ["--only", "good", *words]) == status
    printed = capsys.readouterr().out
    assert expected in printed
    assert ("Missed" in printed) is (status == 1)
    assert ("peer" in printed) is ("--peer" in words)


def test_a_failed_benchmark_is_named_and_other_figures_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    assert main(suites(Bound(3.0))[::-1], peer, [f"--json={file}"]) == 1
    printed, written = capsys.readouterr().out, json.loads(file.read_text())
    assert "RuntimeError: it broke" in printed
    assert "Failed: broken." in printed
    assert written["notes"] == [NOTE]
    figures = [(figure["suite"], figure["name"], figure["kept"]) for figure in written["figures"]]
    assert figures == [("good", "floor", None), ("good", "ours", True)]


def test_without_an_index_there_is_a_reason_instead_of_the_peer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path))
    is_there, note = find_peers()
    assert not is_there
    assert note.startswith("The peers were not measured: ")


def test_the_command_lists_its_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SUITES, peer, ["--list"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert len(names) == len(set(names))
    assert {"text", "tool", "first", "independent", "history", "stream", "ipc"} <= set(names)


@pytest.mark.slow
def test_a_quick_run_of_a_cheap_benchmark_writes_figures_with_bounds(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    assert main(SUITES, peer, ["--quick", "--only", "convert", f"--json={file}"]) == 0
    figures = json.loads(file.read_text())["figures"]
    assert {figure["suite"] for figure in figures} == {"convert"}
    assert all(figure["median"] > 0 for figure in figures)
    assert sum(figure["bound"] is not None for figure in figures) == 2
