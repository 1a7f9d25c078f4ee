"""A figure: a measured quantity, its number of measurements, and its bound. Plain values, created by benchmarks."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .measure import median, p90, ratios_of_neighbours


@dataclass(frozen=True)
class Bound:
    """A limit for the median of a figure, or for its ratio to the floor."""

    of: Literal["median", "ratio"]
    limit: float
    least: bool = False

    def keeps(self, value: float) -> bool:
        """Return whether a value meets the bound."""
        return value >= self.limit if self.least else value <= self.limit

    def __str__(self) -> str:
        what = "" if self.of == "median" else " times the floor"
        return f"at {'least' if self.least else 'most'} {self.limit:g}{what}"


@dataclass(frozen=True)
class Figure:
    """Summary of many measurements of one quantity.

    `suite`, `group` and `name` identify it. Figures of a group have the same unit and belong in one chart. `ratio` is
    the median of the ratios to the group's floor, each taken between neighbours in time.
    """

    suite: str
    group: str
    name: str
    unit: str
    n: int
    median: float
    p90: float
    ratio: float | None = None
    bound: Bound | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Return the key for the table of bounds."""
        return self.suite, self.group, self.name

    @property
    def kept(self) -> bool | None:
        """Return whether the figure meets its bound; None if it has none."""
        if self.bound is None:
            return None
        value = self.median if self.bound.of == "median" else self.ratio
        return value is not None and self.bound.keeps(value)


@dataclass(frozen=True)
class Group:
    """A group of figures that are compared with each other."""

    suite: str
    title: str
    unit: str = "ms"

    def figure(self, name: str, values: Sequence[float], floor: Sequence[float] | None = None) -> Figure:
        """Summarise measurements, and compare them with those of the floor from the same rounds."""
        ratio = None if floor is None else median(ratios_of_neighbours(values, floor))
        return Figure(self.suite, self.title, name, self.unit, len(values), median(values), p90(values), ratio)

    def figures(self, values: dict[str, list[float]], floor: str | None = None) -> list[Figure]:
        """Summarise several contenders, all compared with the one named as the floor."""
        beside = values.get(floor) if floor else None
        return [self.figure(name, found, None if name == floor else beside) for name, found in values.items()]


@dataclass(frozen=True)
class Effort:
    """Effort of a run."""

    quick: bool = False
    """Far fewer repetitions: enough to test that all works, too few for a verdict."""

    peer: Path | None = None
    """Python interpreter of an environment with the peer from the package index, if it is measured."""

    def times(self, full: int, quick: int = 2) -> int:
        """Return the number of repetitions."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Suite:
    """A benchmark: a name for the command line, a title, and the function that measures."""

    name: str
    title: str
    measure: Callable[[Effort], Coroutine[Any, Any, list[Figure]]]


@dataclass(frozen=True)
class Machine:
    """Facts about the machine, and the time of the run."""

    date: str
    cpus: int
    python: str
    cli: str
    load: float
