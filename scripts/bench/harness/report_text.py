"""Figures as lines of text and as JSON."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby

from .figures import Figure, Machine

NOTE = "Ratios count, single times do not: they depend on the computer and on what else it does."

_NAME_WIDTH = 50


def machine_line(machine: Machine) -> str:
    """One line about where and when."""
    return (
        f"{machine.date}, {machine.cpus} CPUs, load {machine.load:.1f}, Python {machine.python}, "
        f"Claude Code {machine.cli}"
    )


def number(value: float) -> str:
    """A number with three digits that mean something, and no more decimals than helps."""
    for least, decimals in ((1_000, 0), (100, 0), (10, 1), (1, 2)):
        if abs(value) >= least:
            return f"{value:,.{decimals}f}"
    return f"{value:.3f}"


def quantity(value: float, unit: str) -> str:
    """A number with its unit; a ratio has none."""
    return f"{number(value)} {unit}".rstrip()


def figure_line(figure: Figure, *, judged: bool = True) -> str:
    """One line about a figure."""
    parts = [
        f"  {figure.name:{_NAME_WIDTH}}",
        f"{quantity(figure.median, figure.unit):>14}",
        # A single value has no distribution.
        f"p90 {number(figure.p90):>9}" if figure.n > 1 else " " * 13,
        f"n {figure.n:>5}",
    ]
    parts.append(f"x {number(figure.ratio):>7}" if figure.ratio is not None else " " * 9)
    if figure.bound is not None:
        parts.append(f"{figure.bound}{'   MISSED' if judged and not figure.kept else ''}")
    return "  ".join(parts).rstrip()


def as_text(figures: Iterable[Figure], *, judged: bool = True) -> str:
    """All figures, under the titles of their groups."""
    lines: list[str] = []
    for (_, title), members in groupby(figures, key=lambda figure: (figure.suite, figure.group)):
        lines += ["", title, *(figure_line(figure, judged=judged) for figure in members)]
    return "\n".join(lines)


def as_json(figures: Iterable[Figure], machine: Machine, notes: Iterable[str] = ()) -> str:
    """All figures as one JSON object: `machine`, `notes`, and `figures` with the fields of `Figure`, and `kept`."""
    listed = [{**asdict(figure), "kept": figure.kept} for figure in figures]
    return json.dumps({"machine": asdict(machine), "notes": [NOTE, *notes], "figures": listed}, indent=1)
