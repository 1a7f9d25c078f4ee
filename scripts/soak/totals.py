"""A soak's results up to now; the size depends on the number of kinds and faults, and not on time."""

import contextlib
import ctypes
import ctypes.util
import gc
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import psutil

from .verdict import RIGHT, Ended, Verdict

# Growth after the warm-up that libraries and the allocator may cause.
_MOST_GROWTH_MB = 100.0
_MOST_CLI_MB = 1_000.0
# More lines would not help, and would fill the memory that is measured.
_MOST_LINES = 50


@dataclass
class KindTotals:
    """Outcomes for a kind of case; `slowest` is in seconds."""

    cases: int = 0
    runs: int = 0
    right: int = 0
    slowest: float = 0.0


@dataclass
class Totals:
    """Sums over all rounds, and memory in megabytes."""

    seconds: float = 0.0
    rounds: int = 0
    cases: int = 0
    runs: int = 0
    right: int = 0
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
            kind.slowest = max(kind.slowest, end.ended - end.begun)
        self.outcomes += verdict.outcomes
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
