"""The command line of the benchmarks, with made-up benchmarks and with one of the real ones."""

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


def test_a_bound_that_is_kept_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SUITES, {KEY: Bound("median", 3.0)}, peer, "", ["--only", "good"]) == 0
    assert "All 1 bounds are kept." in capsys.readouterr().out


def test_a_bound_that_is_missed_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SUITES, {KEY: Bound("ratio", 2.9)}, peer, "", ["--only", "good"]) == 1
    assert "Missed: Title: ours (at most 2.9 times the floor)." in capsys.readouterr().out


def test_a_quick_run_judges_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SUITES, {KEY: Bound("median", 0.0)}, peer, "", ["--only", "good", "--quick"]) == 0
    assert "issed" not in capsys.readouterr().out


def test_what_fails_is_named_and_does_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_figures_go_into_files(tmp_path: Path) -> None:
    json_file, html_file = tmp_path / "figures.json", tmp_path / "page.html"
    main(SUITES, {}, peer, "", ["--only", "good", "--json", str(json_file), "--html", str(html_file)])
    assert [figure["name"] for figure in json.loads(json_file.read_text())["figures"]] == ["floor", "ours"]
    assert "What works" in html_file.read_text()


def test_the_peer_is_measured_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main(SUITES, {}, peer, "", ["--only", "good", "--peer"])
    assert "With the peer." in capsys.readouterr().out
    main(SUITES, {}, peer, "", ["--only", "good"])
    assert "peer" not in capsys.readouterr().out


def test_without_an_index_it_goes_on_without_the_peer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(SUITES, {}, no_peer, "", ["--only", "good", "--peer"]) == 0
    assert "No index, no peer." in capsys.readouterr().out


def test_a_benchmark_that_is_not_there_is_refused() -> None:
    with pytest.raises(SystemExit):
        parser(SUITES, "").parse_args(["--only", "nothing"])


def test_a_single_benchmark_has_nothing_to_choose_from() -> None:
    with pytest.raises(SystemExit):
        parser(SUITES[:1], "").parse_args(["--list"])


def run(*arguments: str | Path) -> str:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout


def test_the_command_lists_its_benchmarks() -> None:
    names = [line.split()[0] for line in run(BENCH, "--list").splitlines()]
    assert len(names) == len(set(names))
    assert {"text", "tool", "first", "independent", "history", "concurrent", "stream", "memory", "ipc"} <= set(names)


def test_a_quick_run_of_a_cheap_benchmark_writes_figures_with_bounds(tmp_path: Path) -> None:
    printed = run(BENCH, "--quick", "--only", "convert", "--json", tmp_path / "figures.json")
    figures = json.loads((tmp_path / "figures.json").read_text())["figures"]
    assert {figure["suite"] for figure in figures} == {"convert"}
    assert all(figure["median"] > 0 for figure in figures)
    assert sum(figure["bound"] is not None for figure in figures) == 2
    assert "Not measured" not in printed
