"""Memory use of processes, by process id."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import psutil

__all__ = ["Memory", "memory_of"]

_MB = 1e6


@dataclass(frozen=True, slots=True)
class Memory:
    """A process's resident memory, in megabytes (10^6 bytes)."""

    own: float
    """Unshared memory."""
    shared: float = 0.0
    """Memory mapped from files; processes that run the same program share most of it. 0 except on Linux."""

    @property
    def resident(self) -> float:
        """Total, as `ps` and `top` show it."""
        return self.own + self.shared


def memory_of(pids: Iterable[int]) -> dict[int, Memory]:
    """Return the memory of all processes that can be measured. It takes microseconds."""
    memories: dict[int, Memory] = {}
    for pid in pids:
        with suppress(psutil.Error):
            # Not `memory_full_info()`: it takes 7 ms and stops the process meanwhile.
            info = psutil.Process(pid).memory_info()
            shared = getattr(info, "shared", 0)
            memories[pid] = Memory((info.rss - shared) / _MB, shared / _MB)
    return memories
