"""Figures for benchmarks: statistics, bounds, tables, JSON, and the command line. It imports no benchmark.

A figure is compared with a floor or a peer from the same run: contenders alternate, so that a busy moment affects all,
and ratios are taken between neighbours in time.
"""

import argparse
import asyncio
import json
import math
import os
import platform
import statistics
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

NOTE = "Compare ratios, not single times: those depend on the computer and its load."
# Width for output into a file.
_WIDTH = 140
# The longest benchmark takes some minutes on two idle cores; after this time it hangs and must not block the others.
_SUITE_SECONDS = 1_800.0


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def ratios_of_neighbours(values: Sequence[float], floor: Sequence[float]) -> list[float]:
    """Return the ratios between values that were measured in succession; from the longer sequence, use a spread."""
    count = min(len(values), len(floor))
    mine, other = ([longer[number * len(longer) // count] for number in range(count)] for longer in (values, floor))
    return [value / least for value, least in zip(mine, other, strict=True)]


def rotated(names: Iterable[str], by: int) -> list[str]:
    """Return the names in another order for each round, so that no contender always follows the same contender."""
    listed = [*names]
    start = by % len(listed) if listed else 0
    return [*listed[start:], *listed[:start]]


async def milliseconds(action: Callable[[], Awaitable[object]]) -> float:
    begun = time.perf_counter()
    await action()
    return (time.perf_counter() - begun) * 1_000


async def alternated(
    actions: Mapping[str, Callable[[], Awaitable[object]]], times: int, warm_up: int
) -> dict[str, list[float]]:
    """Return each action's milliseconds in all rounds; each round runs every action once."""
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(-warm_up, times):
        for name in rotated(actions, number):
            took = await milliseconds(actions[name])
            if number >= 0:
                taken[name].append(took)
    return taken


@dataclass(frozen=True)
class Bound:
    """A limit for a figure's median, or for the ratio to the floor."""

    limit: float
    of: Literal["median", "ratio"] = "median"
    least: bool = False

    def __str__(self) -> str:
        unit = "" if self.of == "median" else " times the floor"
        return f"at {'least' if self.least else 'most'} {self.limit:g}{unit}"


@dataclass(frozen=True)
class Figure:
    """Many measurements of a quantity, which `suite`, `group` and `name` identify.

    Figures in a group have the same unit and belong in a common chart. `ratio` is the median ratio to the floor.
    """

    group: str
    name: str
    unit: str
    n: int
    median: float
    p90: float
    ratio: float | None = None
    bound: Bound | None = None
    suite: str = ""

    @property
    def is_met(self) -> bool | None:
        """True if the figure meets the bound; None without a bound."""
        if self.bound is None:
            return None
        value = self.median if self.bound.of == "median" else self.ratio
        return value is not None and (value >= self.bound.limit if self.bound.least else value <= self.bound.limit)


@dataclass(frozen=True)
class Group:
    """Figures that are compared with each other."""

    title: str
    unit: str = "ms"

    def figure(
        self, name: str, values: Sequence[float], bound: Bound | None = None, floor: Sequence[float] | None = None
    ) -> Figure:
        """Summarise measurements, and compare them with the floor's from the same rounds."""
        p90 = quantile(values, 0.9)
        ratio = None if floor is None else statistics.median(ratios_of_neighbours(values, floor))
        return Figure(self.title, name, self.unit, len(values), statistics.median(values), p90, ratio, bound)

    def figures(
        self, values: Mapping[str, list[float]], floor: str | None = None, bounds: Mapping[str, Bound] | None = None
    ) -> list[Figure]:
        """Summarise contenders, all compared with the `floor`, some with a bound."""
        beside, limits = values.get(floor or ""), bounds or {}
        return [
            self.figure(name, taken, limits.get(name), None if name == floor else beside)
            for name, taken in values.items()
        ]


@dataclass(frozen=True)
class Effort:
    """How much a run measures."""

    quick: bool = False
    """True for far fewer repetitions: enough to test that all works, too few for a verdict."""

    peers: bool = False
    """True if the peers from the package index are measured."""

    def times(self, full: int, quick: int = 2) -> int:
        return quick if self.quick else full


@dataclass(frozen=True)
class Suite:
    """A benchmark: a name for the command line, a title, and the function that measures."""

    name: str
    title: str
    measure: Callable[[Effort], Coroutine[Any, Any, list[Figure]]]


def main(
    suites: Sequence[Suite], find_peers: Callable[[], tuple[bool, str]], arguments: Sequence[str] | None = None
) -> int:
    """Run the command line, and return the exit status: 1 if a bound was missed or a benchmark failed."""
    parser = argparse.ArgumentParser(description="Run all benchmarks, or the named ones.")
    names = [suite.name for suite in suites]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, default=names, help="run these only")
    parser.add_argument("--list", action="store_true", help="print the names of all benchmarks, and do nothing else")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="few repetitions, no bounds: test only that they run")
    parser.add_argument("--peer", action="store_true", help="also measure two other projects, installed by uv")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(f"{suite.name:{max(map(len, names))}}  {suite.title}" for suite in suites))
        return 0
    machine = this_machine()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    are_peers_there, note = find_peers() if options.peer else (False, "")
    chosen = [suite for suite in suites if suite.name in options.only]
    figures, failed = run(chosen, Effort(options.quick, are_peers_there))
    notes = [NOTE, *filter(None, [note])]
    if options.json:
        rows = [{**asdict(figure), "kept": figure.is_met} for figure in figures]
        options.json.write_text(json.dumps({"machine": machine, "notes": notes, "figures": rows}, indent=1), "utf-8")
    missed = [] if options.quick else [figure for figure in figures if figure.is_met is False]
    print("", *notes, *(f"Failed: {name}." for name in failed), sep="\n")
    print(*(f"Missed: {figure.group}: {figure.name} ({figure.bound})." for figure in missed), sep="\n")
    if not options.quick and not missed:
        print(f"All {sum(figure.bound is not None for figure in figures)} bounds are met.")
    return int(bool(missed or failed))


def run(suites: Iterable[Suite], effort: Effort) -> tuple[list[Figure], list[str]]:
    """Run benchmarks in sequence, also after a failure; return the figures, and the names of failed benchmarks."""
    figures: list[Figure] = []
    failed: list[str] = []
    for suite in suites:
        print(f"\n== {suite.name}: {suite.title}", flush=True)
        try:
            measured = asyncio.run(asyncio.wait_for(suite.measure(effort), _SUITE_SECONDS))
        except Exception:
            traceback.print_exc(file=sys.stdout)
            failed.append(suite.name)
            continue
        show(measured, judged=not effort.quick)
        figures += (replace(figure, suite=suite.name) for figure in measured)
    return figures, failed


def this_machine() -> dict[str, object]:
    """Return the facts about this machine on which the figures depend."""
    # Starting the CLI for the version would be slow.
    from claude_agent_sdk._cli_version import __cli_version__

    return {
        "date": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        "cpus": os.cpu_count() or 1,
        "python": platform.python_version(),
        "cli": __cli_version__,
        "load": round(os.getloadavg()[0], 1) if sys.platform != "win32" else None,
    }


def number(value: float) -> str:
    """Return a number with three significant digits, and no more decimals than useful."""
    decimals = next((decimals for least, decimals in ((100, 0), (10, 1), (1, 2)) if abs(value) >= least), 3)
    return f"{value:,.{decimals}f}"


def show(figures: Iterable[Figure], *, judged: bool = True) -> None:
    """Print all figures, a table for each group that marks missed bounds."""
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH
    for title, members in groupby(figures, key=lambda figure: figure.group):
        table = Table("", title=title, title_justify="left", box=SIMPLE)
        for name in ("median", "p90", "n", "times the floor"):
            table.add_column(name, justify="right")
        table.add_column("bound")
        for figure in members:
            missed = judged and figure.is_met is False
            table.add_row(
                figure.name,
                f"{number(figure.median)} {figure.unit}".rstrip(),
                number(figure.p90) if figure.n > 1 else "",  # a single value has no distribution
                str(figure.n),
                "" if figure.ratio is None else number(figure.ratio),
                f"{figure.bound or ''}{', MISSED' if missed else ''}",
                style="red" if missed else None,
            )
        console.print(table)
