"""The lease of a session: a caller's access to it, which ends with the lease."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from ..errors import CLIConnectionError

P = ParamSpec("P")
T = TypeVar("T")


class LeaseTerm:
    """A caller's access to a session, which all calls pass on their way to the background loop.

    A caller may use a leased session after the lease by mistake, or from another thread as the lease ends. So each call
    checks, on the background loop, that the lease is valid; the end of the lease cancels running calls.

    The caller that has opened the session has no lease: the session ends when nothing refers to its access any more.
    """

    def __init__(self, *, is_lease: bool = True) -> None:
        self._is_lease = is_lease
        self.is_over = False
        """True if calls are errors: the process may serve another lease."""
        self.calls: set[asyncio.Future[Any]] = set()
        """Running calls in a lease."""

    def finish(self) -> None:
        """End the lease and cancel running calls."""
        self.is_over = True
        for call in self.calls:
            call.cancel()

    async def call(self, function: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await `function(*args, **kwargs)`; raise if the lease ends or has ended. Runs on the background loop."""
        if not self._is_lease:
            return await function(*args, **kwargs)
        if self.is_over:
            raise _lease_ended()
        call = asyncio.ensure_future(function(*args, **kwargs))
        self.calls.add(call)
        call.add_done_callback(self.calls.discard)
        try:
            return await call
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if not self.is_over or (caller is not None and caller.cancelling()):
                raise
            raise _lease_ended() from None


def _lease_ended() -> CLIConnectionError:
    return CLIConnectionError(reason="The lease of this session has ended", advice="Lease another session.")
