"""Lifetime of a pool's core, for an object that any thread may use: new cores in forked children, and the end.

The core, the processes and their loop belong to one process of the operating system. So a forked child gets a new core,
and the parent's continues in the parent.
"""

import asyncio
import weakref
from collections.abc import Callable

from ..background import at_exit, in_forked_child, tell_background
from .core import PoolCore

__all__ = ["PoolOwner"]


class PoolOwner:
    """Holds a pool's core. When `face` is garbage-collected, the processes end, so `make` must not refer to it."""

    def __init__(self, face: object, make: Callable[[], PoolCore]) -> None:
        self._make = make
        self.core = make()
        """The current core."""
        finalizer = weakref.finalize(face, self._close_soon)
        finalizer.atexit = False  # when Python ends, `_close_all` closes all cores together
        _owners.add(self)

    def renew(self) -> PoolCore:
        """Make a new core, and return the previous core, which the caller must close."""
        before, self.core = self.core, self._make()
        return before

    def _close_soon(self) -> None:
        tell_background(self.core.aclose)


_owners: "weakref.WeakSet[PoolOwner]" = weakref.WeakSet()


async def _close_all() -> None:
    # Before the sessions are closed: otherwise a pool would start others in their place.
    cores = [owner.core for owner in [*_owners] if not owner.core.is_closed]
    await asyncio.gather(*(core.aclose() for core in cores), return_exceptions=True)


def _renew_all() -> None:
    for owner in [*_owners]:
        if not owner.core.is_closed:
            owner.renew()


at_exit(_close_all)
in_forked_child(_renew_all)
