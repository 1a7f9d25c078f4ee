"""A driver for as long as its session is lent, and not a moment longer.

Who holds on to a leased session may use it later by mistake, or from another thread in the very moment in which it is
given back. So what is lent is a face of its own with a `Borrowed` driver behind it. Whether the lease lasts is looked
up where each call is carried out, on the background loop, and calls that are under way when it ends are broken off.
"""

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING, Any, cast

from cc_types import CLIConnectionError

from .tool_calls import SuspendedCalls

if TYPE_CHECKING:
    from ._driver import Driver

__all__ = ["Borrowed"]

# What may come late, and has nothing to do then: leaving a turn, and closing.
_DONE_ANYWAY = frozenset({"close", "drained", "leave"})


class Borrowed:
    """Passes everything on to a driver until `end_lease()`; from then on it is the driver of a dead session."""

    def __init__(self, driver: "Driver") -> None:
        self._lent = driver
        self._calls: set[asyncio.Future[object]] = set()
        self._lease_end: CLIConnectionError | None = None
        self._instead: dict[str, object] = {}

    @property
    def as_driver(self) -> "Driver":
        """For the face of a session, which sees no difference."""
        return cast("Driver", self)

    def end_lease(self) -> set[asyncio.Future[object]]:
        """Pass nothing on any more; returns the calls that are being broken off."""
        error = CLIConnectionError(reason="The lease of this session has ended", advice="Lease another one.")
        calls = SuspendedCalls(())
        calls.end(error)
        self._instead = {
            "calls": calls, "death": None, "end": error, "exchange": None, "last_user_uuid": None, "process": None,
        }  # fmt: skip
        self._lease_end = error
        for call in self._calls:
            call.cancel()
        return self._calls

    def __getattr__(self, name: str) -> Any:
        if name in self._instead:
            return self._instead[name]
        value = getattr(self._lent, name)
        if inspect.iscoroutinefunction(value):
            return functools.partial(self._call_async, name)
        return functools.partial(self._call, name) if inspect.ismethod(value) else value

    async def _call_async(self, name: str, *args: object, **kwargs: object) -> object:
        if (method := self._method(name)) is None:
            return None
        call = asyncio.ensure_future(method(*args, **kwargs))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        try:
            return await call
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._lease_end is None or (caller is not None and caller.cancelling()):
                raise
            raise self._lease_end from None

    def _call(self, name: str, *args: object, **kwargs: object) -> object:
        return method(*args, **kwargs) if (method := self._method(name)) is not None else None

    def _method(self, name: str) -> Any:
        if self._lease_end is None:
            return getattr(self._lent, name)
        if name in _DONE_ANYWAY:
            return None
        raise self._lease_end
