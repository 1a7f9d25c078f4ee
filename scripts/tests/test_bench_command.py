"""The command line of the benchmarks, with artificial benchmarks and with one of the real ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.harness.command import main, parser
from bench.harness.figures import Bound, Effort, Figure, Group, Suite

BENCH = Path(__file__).parents[1] / "bench"
# Imports alone take seconds on a loaded machine.
PATIENCE = 55.0


async def measure_good(effort: Effort) -> list[Figure]:
    peer = {"peer": [9.0]} if effort.peer else {}
    return Group("good", "Title").figures({"floor": [1.0], "ours": [float(effort.times(3, 2))], **peer}, "floor")


async def measure_broken(effort: Effort) -> list[Figure]:
    raise RuntimeError("it broke")


SUITES = (Suite("good", "What works", measure_good), Suite("broken", "What does not", measure_broken))
KEY = ("good", "Title", "ours")


@contextmanager
def peer() -> Generator[tuple[Path | None, str]]:
    yield Path("python"), "With the peer."


@contextmanager
def no_peer() -> Generator[tuple[Path | None, str]]:
    yield None, "No index, no peer."


@pytest.mark.parametrize(
    ("bound", "words", "status", "said", "unsaid"),
    [
        (Bound("median", 3.0), [], 0, "All 1 bounds are met.", "issed"),
        (Bound("ratio", 2.9), [], 1, "Missed: Title: ours (at most 2.9 times the floor).", "are kept"),
        (Bound("median", 0.0), ["--quick"], 0, "Title", "issed"),
    ],
    ids=["kept", "missed", "quick"],
)
def test_a_missed_bound_exits_with_1_and_a_quick_run_checks_no_bounds(
    bound: Bound, words: list[str], status: int, said: str, unsaid: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(SUITES, {KEY: bound}, peer, "", ["--only", "good", *words]) == status
    printed = capsys.readouterr().out
    assert said in printed
    assert unsaid not in printed


def test_a_failed_benchmark_is_named_and_does_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SUITES[::-1], {}, peer, "", []) == 1
    printed = capsys.readouterr().out
    assert "RuntimeError: it broke" in printed
    assert "Failed: broken." in printed
    assert "Title" in printed


def test_a_bound_without_a_figure_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    bounds = {("good", "Title", "renamed"): Bound("median", 1.0), ("other", "Title", "ours"): Bound("median", 1.0)}
    main(SUITES, bounds, peer, "", ["--only", "good"])
    printed = capsys.readouterr().out
    assert "Not measured: good, Title, renamed." in printed
    assert "other" not in printed


def test_figures_go_into_a_file(tmp_path: Path) -> None:
    main(SUITES, {}, peer, "", ["--only", "good", "--json", str(tmp_path / "figures.json")])
    assert [figure["name"] for figure in json.loads((tmp_path / "figures.json").read_text())["figures"]] == [
        "floor",
        "ours",
    ]


def test_the_peer_is_measured_when_asked_for_and_where_there_is_an_index(capsys: pytest.CaptureFixture[str]) -> None:
    for environment, said in ((peer, "With the peer."), (no_peer, "No index, no peer.")):
        assert main(SUITES, {}, environment, "", ["--only", "good", "--peer"]) == 0
        assert said in capsys.readouterr().out
    main(SUITES, {}, peer, "", ["--only", "good"])
    assert "peer" not in capsys.readouterr().out


def test_an_unknown_benchmark_is_rejected_and_a_single_suite_has_no_selection() -> None:
    for suites, words in ((SUITES, ["--only", "nothing"]), (SUITES[:1], ["--list"])):
        with pytest.raises(SystemExit):
            parser(suites, "").parse_args(words)


def run(*arguments: str | Path) -> str:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout


def test_the_command_lists_its_benchmarks() -> None:
    names = [line.split()[0] for line in run(BENCH, "--list").splitlines()]
    assert len(names) == len(set(names))
    assert {"text", "tool", "first", "independent", "history", "concurrent", "stream", "memory", "ipc"} <= set(names)


@pytest.mark.slow
def test_a_quick_run_of_a_cheap_benchmark_writes_figures_with_bounds(tmp_path: Path) -> None:
    printed = run(BENCH, "--quick", "--only", "convert", "--json", tmp_path / "figures.json")
    figures = json.loads((tmp_path / "figures.json").read_text())["figures"]
    assert {figure["suite"] for figure in figures} == {"convert"}
    assert all(figure["median"] > 0 for figure in figures)
    assert sum(figure["bound"] is not None for figure in figures) == 2
    assert "Not measured" not in printed
