"""A soak's results up to now, and the output: a progress line, and tables at the end.

The size of the results depends on the number of kinds and faults, and not on time.
"""

import contextlib
import ctypes
import ctypes.util
import gc
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import psutil

from .faults import FAULTS, Round
from .verdict import RIGHT, Ended, Verdict

# Growth after the warm-up that libraries and the allocator may cause.
_MOST_GROWTH_MB = 100.0
_MOST_CLI_MB = 1_000.0
# More lines would not help, and would fill the memory that is measured.
_MOST_LINES = 50


@dataclass
class Settings:
    """Settings from the command line."""

    minutes: float = 1.0
    seed: int = field(default_factory=lambda: random.randrange(2**32))
    at_once: int = 8
    pool: int = 12
    faults: Sequence[str] = tuple(FAULTS)
    first_round: int = 0
    only_lists: bool = False
    secrets: int = 0


@dataclass
class KindTotals:
    """Outcomes for a kind of case; `slowest` is in seconds."""

    cases: int = 0
    runs: int = 0
    right: int = 0
    slowest: float = 0.0


@dataclass
class Totals(KindTotals):
    """Sums over all rounds and kinds, and memory in megabytes."""

    seconds: float = 0.0
    rounds: int = 0
    kinds: dict[str, KindTotals] = field(default_factory=dict[str, KindTotals])
    outcomes: Counter[str] = field(default_factory=Counter[str])
    done: Counter[str] = field(default_factory=Counter[str])
    """How often each fault was injected."""
    caused: Counter[str] = field(default_factory=Counter[str])
    """Number of cases that each fault ended with an error."""
    requests: int = 0
    starts: int = 0
    """Number of started processes."""
    orphans: int = 0
    """Number of tasks that pydantic-ai left after cancelled runs, and for which no run waited."""
    longest_wait: float = 0.0
    """Longest time in seconds for which this process waited for the processor: the machine's load."""
    resting_mb: list[float] = field(default_factory=list[float])
    """This process's memory at each rest; the first is after the warm-up."""
    most_cli_mb: float = 0.0
    most_python_mb: float = 0.0
    broken: list[str] = field(default_factory=list[str])
    """The violated invariants: a line each, with the round."""
    broken_count: int = 0

    def count(self, ends: Iterable[Ended], verdict: Verdict) -> None:
        for end in ends:
            kind = self.kinds.setdefault(end.kind, KindTotals())
            for totals in (kind, self):
                totals.cases += 1
                totals.runs += end.runs
                totals.right += end.error == RIGHT
                totals.slowest = max(totals.slowest, end.ended - end.begun)
            self.outcomes[end.error] += 1
        self.caused += verdict.causes

    def breaks(self, number: int, lines: Iterable[str]) -> None:
        for line in lines:
            self.broken_count += 1
            if len(self.broken) < _MOST_LINES:
                self.broken.append(f"round {number}: {line}")

    def sample(self, cli_pids: Iterable[int]) -> None:
        """Sample the memory. Does nothing while no file can be opened."""
        with contextlib.suppress(OSError):
            self.most_python_mb = max(self.most_python_mb, _resident_mb())
        for pid in cli_pids:
            with contextlib.suppress(psutil.Error, OSError):
                self.most_cli_mb = max(self.most_cli_mb, _resident_mb(pid))

    def rest(self) -> None:
        """Sample this process's memory after garbage collection, and after free memory was returned."""
        gc.collect()
        # The allocator's cache depends on when large answers came, and does not show a leak.
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(ctypes.util.find_library("c")).malloc_trim(0)
        self.resting_mb.append(_resident_mb())

    def judge_memory(self, number: int) -> None:
        growth = self.resting_mb[-1] - self.resting_mb[0] if self.resting_mb else 0.0
        if growth > _MOST_GROWTH_MB:
            self.breaks(number, [f"this process grew by {growth:.0f} MB, more than {_MOST_GROWTH_MB:.0f}"])
        if self.most_cli_mb > _MOST_CLI_MB:
            self.breaks(number, [f"a CLI process had {self.most_cli_mb:.0f} MB, more than {_MOST_CLI_MB:.0f}"])


def _resident_mb(pid: int | None = None) -> float:
    return psutil.Process(pid).memory_info().rss / 1e6


def progress(totals: Totals, plan: Round | None) -> str:
    place = "warm-up" if plan is None else f"round {plan.number} ({', '.join(plan.faults) or 'calm'})"
    faults = " ".join(f"{name}:{count}" for name, count in sorted(totals.done.items())) or "none yet"
    work = f"{totals.runs} runs, {_rate(totals):.1f}/s  violated: {totals.broken_count}"
    largest = f"largest: python {totals.most_python_mb:.0f} MB, CLI {totals.most_cli_mb:.0f} MB"
    return f"{totals.seconds:5.0f} s  {place}  {work}  {largest}  faults: {faults}"


def summary(settings: Settings, totals: Totals, disk: str) -> str:
    """Return all figures, and the violated invariants with a command to reproduce the first violation."""
    kinds = [
        (name, kind.cases, kind.runs, kind.right, f"{kind.slowest:.1f} s")
        for name, kind in sorted(totals.kinds.items())
    ]
    faults = [(name, totals.done[name], totals.caused[name]) for name in settings.faults]
    rests = [f"{megabytes:.0f}" for megabytes in totals.resting_mb]
    lines = [
        f"{totals.runs} runs ({_rate(totals):.1f}/s) in {totals.cases} cases and {totals.rounds} rounds",
        f"{totals.seconds:.0f} s, {settings.at_once} at once on {settings.pool} processes; seed {settings.seed}",
        f"{totals.requests} requests to the API; {totals.starts} processes started; full disk by: {disk}",
        f"longest wait of this process for processor time: {totals.longest_wait:.1f} s",
        "",
        *_table(("cases", "made", "runs", "right", "slowest"), kinds),
        "",
        *_table(("faults", "done", "errors by it"), faults),
        "",
        "ended: " + ", ".join(f"{name} {count}" for name, count in totals.outcomes.most_common()),
        f"memory of this process at {len(rests)} rests: {', then '.join([*rests[:1], *rests[-1:]])} MB",
        f"at most {totals.most_python_mb:.0f} MB; largest CLI process {totals.most_cli_mb:.0f} MB",
        f"tasks left by pydantic-ai after cancelled runs: {totals.orphans}",
        f"violated invariants: {totals.broken_count}",
        *(f"  {line}" for line in totals.broken),
    ]
    if totals.broken:
        number = max(0, int(totals.broken[0].removeprefix("round ").partition(":")[0]))
        lines.append(
            f"To reproduce: uv run scripts/soak --seed {settings.seed} --round {number} "
            f"--minutes {settings.minutes:g} --at-once {settings.at_once} --pool {settings.pool} "
            f"--only {' '.join(settings.faults)}"
        )
    return "\n".join(lines)


def _rate(totals: Totals) -> float:
    return totals.runs / totals.seconds if totals.seconds else 0.0


def _table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> list[str]:
    return ["".join(f"{cell!s:<14}" for cell in row).rstrip() for row in (head, *rows)]
