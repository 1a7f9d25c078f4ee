"""Lease term: the place that all calls to a session pass on their way to the background loop.

A caller may use a leased session after the lease by mistake, or from another thread as the lease ends. So each call
checks, on the background loop, that the lease is valid; the end of the lease cancels running calls.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from cc_types import CLIConnectionError

from ..background import on_background

__all__ = ["LeaseTerm"]

P = ParamSpec("P")
T = TypeVar("T")


class LeaseTerm:
    """A caller's access to a session, and the calls that run meanwhile.

    Args:
        is_lease: False for the caller that has opened the session, whose access does not end before the session.
    """

    def __init__(self, *, is_lease: bool = True) -> None:
        self._is_lease = is_lease
        self.end: CLIConnectionError | None = None
        """Error that later calls raise."""
        self.calls: set[asyncio.Future[Any]] = set()
        """Running calls in a lease."""

    def finish(self) -> None:
        """End the lease and cancel running calls."""
        self.end = CLIConnectionError(reason="The lease of this session has ended", advice="Lease another session.")
        for call in self.calls:
            call.cancel()

    async def call(self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await `function(*args, **kwargs)` on the background loop.

        Raises:
            CLIConnectionError: The lease has ended, perhaps during the call.
        """
        if not self._is_lease:
            return await on_background(function, *args, **kwargs)
        return await on_background(self._call, functools.partial(function, *args, **kwargs))

    async def _call(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self.end is not None:
            raise self.end
        call = asyncio.ensure_future(function())
        self.calls.add(call)
        call.add_done_callback(self.calls.discard)
        try:
            return await call
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self.end is None or (caller is not None and caller.cancelling()):
                raise
            raise self.end from None
