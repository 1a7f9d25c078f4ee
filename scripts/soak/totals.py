"""Findings of a soak so far; the size depends on the number of kinds and faults, and not on time."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .memory import Memory
from .verdict import RIGHT, Ended, Verdict

# More lines would not help, and would fill the memory that is measured.
_MOST_TOLD = 50


@dataclass
class KindTotals:
    """Outcome of the cases of one kind; `slowest` is in seconds."""

    cases: int = 0
    runs: int = 0
    right: int = 0
    slowest: float = 0.0


@dataclass
class Totals:
    """Sums over all rounds."""

    seconds: float = 0.0
    rounds: int = 0
    kinds: dict[str, KindTotals] = field(default_factory=dict[str, KindTotals])
    outcomes: Counter[str] = field(default_factory=Counter[str])
    done: Counter[str] = field(default_factory=Counter[str])
    """How often each fault was injected."""
    caused: Counter[str] = field(default_factory=Counter[str])
    """Number of cases that ended with an error because of it."""
    requests: int = 0
    starts: int = 0
    """Number of processes started."""
    orphans: int = 0
    """Number of tasks left by pydantic-ai after cancelled runs, on which no run waited."""
    longest_wait: float = 0.0
    """Longest wait of this process for processor time, in seconds: the load of the machine."""
    memory: Memory = field(default_factory=Memory)
    broken: list[str] = field(default_factory=list[str])
    """The violated invariants: one line each, with the round."""
    broken_count: int = 0

    @property
    def cases(self) -> int:
        """Return the number of finished cases."""
        return sum(kind.cases for kind in self.kinds.values())

    @property
    def runs(self) -> int:
        """Return their number of agent runs."""
        return sum(kind.runs for kind in self.kinds.values())

    def count(self, ends: Iterable[Ended], verdict: Verdict) -> None:
        """Add some cases, and the verdict about them."""
        for end in ends:
            kind = self.kinds.setdefault(end.kind, KindTotals())
            kind.cases += 1
            kind.runs += end.runs
            kind.right += end.error == RIGHT
            kind.slowest = max(kind.slowest, end.ended - end.begun)
        self.outcomes += verdict.outcomes
        self.caused += verdict.causes

    def breaks(self, number: int, lines: Iterable[str]) -> None:
        """Record invariants that were violated in a round."""
        for line in lines:
            self.broken_count += 1
            if len(self.broken) < _MOST_TOLD:
                self.broken.append(f"round {number}: {line}")
