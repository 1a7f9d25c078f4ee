"""Figures as tables and as JSON."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from .figures import Figure, Machine

NOTE = "Compare ratios, not single times: those depend on the computer and its load."
# Width for output into a file; a terminal has its own.
_WIDTH = 140


def number(value: float) -> str:
    """Return a number with three significant digits, and no more decimals than useful."""
    decimals = next((decimals for least, decimals in ((100, 0), (10, 1), (1, 2)) if abs(value) >= least), 3)
    return f"{value:,.{decimals}f}"


def table(title: str, figures: Iterable[Figure], *, judged: bool = True) -> Table:
    """Return the figures of a group as a table that marks missed bounds."""
    made = Table("", title=title, title_justify="left", box=SIMPLE)
    for name in ("median", "p90", "n", "times the floor"):
        made.add_column(name, justify="right")
    made.add_column("bound")
    for one in figures:
        missed = judged and one.kept is False
        made.add_row(
            one.name,
            f"{number(one.median)} {one.unit}".rstrip(),
            number(one.p90) if one.n > 1 else "",  # a single value has no distribution
            str(one.n),
            "" if one.ratio is None else number(one.ratio),
            f"{one.bound or ''}{', MISSED' if missed else ''}",
            style="red" if missed else None,
        )
    return made


def show(figures: Iterable[Figure], *, judged: bool = True) -> None:
    """Print all figures, a table for each group."""
    console = Console(markup=False, highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH
    for (_, title), members in groupby(figures, key=lambda figure: (figure.suite, figure.group)):
        console.print(table(title, members, judged=judged))


def as_json(figures: Iterable[Figure], machine: Machine, notes: Iterable[str] = ()) -> str:
    """Return a JSON object: `machine`, `notes`, and `figures` with the fields of `Figure` and `kept`."""
    listed = [{**asdict(figure), "kept": figure.kept} for figure in figures]
    return json.dumps({"machine": asdict(machine), "notes": [NOTE, *notes], "figures": listed}, indent=1)
