"""Processes ready ahead of need: `prewarm` in a pool's limits, and calls to `warm()`.

Pure: the pool starts the processes that are missing here.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from .launch import Launch
from .processes import Processes

__all__ = ["Prewarming", "WarmTarget"]


@dataclass(frozen=True, slots=True, eq=False)
class WarmTarget:
    """A call to `warm()`: the wanted number of processes, leased ones included."""

    launch: Launch
    count: int
    done: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Set when there are so many, or a start has failed."""


class Prewarming:
    """Wanted processes of a pool: `count` idle ones for `launch()`, which the login may change, and targets."""

    def __init__(self, processes: Processes, launch: Callable[[], Launch], count: int) -> None:
        self._processes, self._launch, self._count = processes, launch, count
        self.is_on = False
        """True from the first lease on; false after a failed start, until the next lease."""
        self.targets: list[WarmTarget] = []

    def missing_for_targets(self) -> list[Launch]:
        """Return the starts that the first unfinished call to `warm()` needs; finish the calls before it.

        Not for all calls at once: they might take the places from each other for ever.
        """
        for target in self._unfinished():
            missing = target.count - self._processes.count(target.launch.key)
            if missing > 0:
                return [target.launch] * (missing - self._processes.starting_by_key()[target.launch.key])
            target.done.set_result(None)
        return []

    def missing_ahead(self) -> list[Launch]:
        """Return the starts that `prewarm` needs."""
        if not self.is_on or not self._count:
            return []
        launch = self._launch()
        ready = self._processes.count_idle(launch.key) + self._processes.coming()[launch.key]
        return [launch] * (self._count - ready)

    def reserve(self) -> Counter[Hashable]:
        """Return the number of idle processes per key that the idle timeout does not end."""
        reserve = Counter({self._launch().key: self._count})
        for target in self._unfinished():
            reserve[target.launch.key] = max(reserve[target.launch.key], target.count)
        return reserve

    def fail(self, key: Hashable, error: Exception) -> bool:
        """Report a failed start to a call that waits for such a process; return false if there is none."""
        for target in self._unfinished():
            if target.launch.key == key:
                target.done.set_exception(error)
                return True
        if key == self._launch().key:  # would fail again and again
            self.is_on = False
        return False

    def _unfinished(self) -> list[WarmTarget]:
        return [target for target in self.targets if not target.done.done()]
