"""Memory usage: of this process, which must not grow, and the peak of any CLI process."""

import contextlib
import ctypes
import ctypes.util
import gc
from collections.abc import Iterable
from dataclasses import dataclass, field

import psutil

_MEGABYTE = 1e6


def resident_mb(pid: int | None = None) -> float:
    """Return the resident memory of a process, or of this one."""
    return psutil.Process(pid).memory_info().rss / _MEGABYTE


def resting_mb() -> float:
    """Return the memory of this process after garbage collection and after free memory was returned to the system."""
    gc.collect()
    # The allocator's cache depends on the time of the large answers, and does not show a leak.
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(ctypes.util.find_library("c")).malloc_trim(0)
    return resident_mb()


@dataclass
class Memory:
    """Measurements so far, in megabytes."""

    rests: list[float] = field(default_factory=list[float])
    """Memory of this process, at each rest; the first one is after the warm-up."""
    most_cli: float = 0.0
    most_python: float = 0.0

    def sample(self, cli_pids: Iterable[int]) -> None:
        """Sample once. Does nothing while no file can be opened."""
        with contextlib.suppress(OSError):
            self.most_python = max(self.most_python, resident_mb())
        for pid in cli_pids:
            with contextlib.suppress(psutil.Error, OSError):
                self.most_cli = max(self.most_cli, resident_mb(pid))

    def rest(self) -> None:
        """Sample at a moment of rest."""
        self.rests.append(resting_mb())

    def problems(self, most_growth: float, most_cli: float) -> list[str]:
        """Return the exceeded limits."""
        found: list[str] = []
        if self.rests and (grown := self.rests[-1] - self.rests[0]) > most_growth:
            found.append(f"this process grew by {grown:.0f} MB, more than {most_growth:.0f}")
        if self.most_cli > most_cli:
            found.append(f"a CLI process had {self.most_cli:.0f} MB, more than {most_cli:.0f}")
        return found
