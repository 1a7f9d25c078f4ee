"""The command line: selection of benchmarks, effort, output of the figures, and the exit status."""

import argparse
import asyncio
import os
import platform
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path

from .figures import Bound, Effort, Figure, Machine, Suite
from .report import NOTE, as_json, show

# The longest takes two minutes on two idle cores. One that runs this long hangs and must not block the others.
_SUITE_SECONDS = 1_200.0

Bounds = Mapping[tuple[str, str, str], Bound]
"""Limits, by suite, group and name of a figure."""

Peer = Callable[[], AbstractContextManager[tuple[Path | None, str]]]
"""Creates the peer's environment: its interpreter, or None and the reason."""


@dataclass
class Outcome:
    """Result of a run."""

    figures: list[Figure] = field(default_factory=list[Figure])
    notes: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])


def parser(suites: Sequence[Suite], description: str) -> argparse.ArgumentParser:
    """Return the argument parser; with a single suite there is no selection."""
    made = argparse.ArgumentParser(description=description)
    if len(suites) > 1:
        names = [suite.name for suite in suites]
        made.add_argument("--only", nargs="+", metavar="NAME", choices=names, help="run these benchmarks only")
        made.add_argument("--list", action="store_true", help="print the names of all benchmarks, and do nothing else")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    made.add_argument("--quick", action="store_true", help="few repetitions, no bounds: test only that they run")
    made.add_argument(
        "--peer",
        action="store_true",
        help="also measure pydantic-ai-claude-code, in a temporary environment made by uv",
    )
    return made


def main(
    suites: Sequence[Suite], bounds: Bounds, peer: Peer, description: str, arguments: Sequence[str] | None = None
) -> int:
    """Run the command line, and return the exit status: 1 if a bound was missed or a benchmark failed."""
    options = parser(suites, description).parse_args(arguments)
    if getattr(options, "list", False):
        width = max(len(suite.name) for suite in suites)
        print("\n".join(f"{suite.name:{width}}  {suite.title}" for suite in suites))
        return 0
    names = getattr(options, "only", None)
    chosen = [suite for suite in suites if names is None or suite.name in names]
    machine = this_machine()
    print(", ".join(f"{name} {value}" for name, value in asdict(machine).items()))
    with ExitStack() as stack:
        python, note = stack.enter_context(peer()) if options.peer else (None, "")
        outcome = run(chosen, bounds, Effort(options.quick, python))
    if note:
        outcome.notes.append(note)
    judged = not options.quick
    if options.json:
        options.json.write_text(as_json(outcome.figures, machine, outcome.notes), "utf-8")
    print(summary(outcome, judged=judged))
    missed = judged and any(figure.kept is False for figure in outcome.figures)
    return int(missed or bool(outcome.failed))


def run(suites: Sequence[Suite], bounds: Bounds, effort: Effort) -> Outcome:
    """Run benchmarks one after the other; a failure does not stop the others."""
    outcome = Outcome()
    for suite in suites:
        print(f"\n== {suite.name}: {suite.title}", flush=True)
        try:
            found = asyncio.run(_bounded(suite, effort))
        except Exception:
            traceback.print_exc(file=sys.stdout)
            outcome.failed.append(suite.name)
            continue
        figures = [replace(figure, bound=bounds.get(figure.key)) for figure in found]
        show(figures, judged=not effort.quick)
        outcome.figures += figures
        outcome.notes += unmeasured(suite, figures, bounds)
    return outcome


async def _bounded(suite: Suite, effort: Effort) -> list[Figure]:
    async with asyncio.timeout(_SUITE_SECONDS):
        return await suite.measure(effort)


def unmeasured(suite: Suite, figures: Iterable[Figure], bounds: Bounds) -> list[str]:
    """Print the bounds of a suite that have no figure."""
    measured = {figure.key for figure in figures}
    return [f"Not measured: {', '.join(key)}." for key in bounds if key[0] == suite.name and key not in measured]


def summary(outcome: Outcome, *, judged: bool) -> str:
    """Return the last lines: notes, failures and missed bounds."""
    lines = ["", NOTE, *outcome.notes, *(f"Failed: {name}." for name in outcome.failed)]
    missed = [figure for figure in outcome.figures if figure.kept is False]
    if judged:
        lines += [f"Missed: {figure.group}: {figure.name} ({figure.bound})." for figure in missed]
        if not missed:
            lines.append(f"All {sum(figure.bound is not None for figure in outcome.figures)} bounds are met.")
    return "\n".join(lines)


def this_machine() -> Machine:
    """Return the facts about this machine on which the figures depend."""
    if sys.platform == "win32":
        raise NotImplementedError("needs POSIX")
    return Machine(
        date=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
        cpus=os.cpu_count() or 1,
        python=platform.python_version(),
        cli=_cli_version(),
        load=round(os.getloadavg()[0], 1),
    )


def _cli_version() -> str:
    # The SDK contains the version of the CLI in its wheel; starting the CLI for it would be slow.
    from claude_agent_sdk._cli_version import __cli_version__

    return __cli_version__
