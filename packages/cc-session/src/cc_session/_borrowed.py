"""A driver for as long as its session is lent, and not a moment longer.

Who holds on to a leased session may use it later by mistake, or from another thread in the very moment in which it is
given back. So what is lent is a face of its own with a `Borrowed` driver behind it. Whether the lease lasts is looked
up where each call is carried out, on the background loop, where it cannot end meanwhile.
"""

import functools
import inspect
from typing import TYPE_CHECKING, Any, cast

from cc_types import CLIConnectionError

from .tool_calls import SuspendedCalls

if TYPE_CHECKING:
    from ._driver import Driver

__all__ = ["Borrowed"]

# What may come late, and has nothing to do then: leaving a turn, and closing.
_DONE_ANYWAY = frozenset({"close", "leave"})


class Borrowed:
    """Passes everything on to a driver until `end_lease()`; from then on it is the driver of a dead session."""

    def __init__(self, driver: "Driver") -> None:
        self._lent = driver
        self._end: CLIConnectionError | None = None
        self._instead: dict[str, object] = {}

    @property
    def as_driver(self) -> "Driver":
        """For the face of a session, which sees no difference."""
        return cast("Driver", self)

    def end_lease(self) -> None:
        """Pass nothing on any more."""
        error = CLIConnectionError(
            reason="The lease of this session has ended", advice="Lease another one from the pool."
        )
        calls = SuspendedCalls(())
        calls.end(error)
        self._instead = {
            "calls": calls, "death": None, "end": error, "exchange": None, "last_user_uuid": None, "process": None,
        }  # fmt: skip
        self._end = error

    def __getattr__(self, name: str) -> Any:
        if name in self._instead:
            return self._instead[name]
        value = getattr(self._lent, name)
        if inspect.iscoroutinefunction(value):
            return functools.partial(self._call_async, name)
        return functools.partial(self._call, name) if inspect.ismethod(value) else value

    async def _call_async(self, name: str, *args: object, **kwargs: object) -> object:
        return await method(*args, **kwargs) if (method := self._method(name)) is not None else None

    def _call(self, name: str, *args: object, **kwargs: object) -> object:
        return method(*args, **kwargs) if (method := self._method(name)) is not None else None

    def _method(self, name: str) -> Any:
        if self._end is None:
            return getattr(self._lent, name)
        if name in _DONE_ANYWAY:
            return None
        raise self._end
