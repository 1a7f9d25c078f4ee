"""A session core that is valid only for the duration of a lease.

A caller that keeps a leased session may use it later by mistake, or from another thread at the moment of its return. So
a lease has its own facade with a `LeasedObject` behind it. Each call checks, on the background loop, that the lease is
valid; the end of the lease cancels running calls.
"""

import asyncio
import functools
import inspect
from typing import Any, cast

from cc_types import CLIConnectionError

from ..mcp.control import McpControl
from .core import SessionCore
from .extensions import Extensions
from .spending import CostLedger

__all__ = ["LeaseTerm", "LeasedObject"]

# Calls that may come late, and then have no effect: leaving a turn, and closing.
_DONE_ANYWAY = frozenset({"close", "drained", "leave"})

# Parts of a session core that a session's facade calls, and that are leased with it.
_PARTS = (Extensions, McpControl)


class LeaseTerm:
    """Duration of a session's lease, and its running calls."""

    def __init__(self) -> None:
        self.end: CLIConnectionError | None = None
        """Error that later calls raise."""
        self.calls: set[asyncio.Future[object]] = set()
        """Running calls."""
        self.stale_state: dict[str, object] = {}
        """State that the session shows later: a dead one."""

    def finish(self) -> None:
        """End the lease and cancel running calls."""
        self.end = CLIConnectionError(reason="The lease of this session has ended", advice="Lease another one.")
        self.stale_state = {
            "death": None, "end": self.end, "sent": None, "last_user_uuid": None, "process": None,
            "ledger": CostLedger(), "turns": 0,
        }  # fmt: skip
        for call in self.calls:
            call.cancel()


class LeasedObject:
    """Forwards everything to a session core, or a part of one, until the term has ended."""

    def __init__(self, lent: object, term: LeaseTerm) -> None:
        self._lent = lent
        self._term = term

    @property
    def as_core(self) -> SessionCore:
        """This object, typed as the core of a session's facade."""
        return cast(SessionCore, self)

    def __getattr__(self, name: str) -> Any:
        if name in self._term.stale_state:
            return self._term.stale_state[name]
        value = getattr(self._lent, name)
        if isinstance(value, _PARTS):
            return LeasedObject(value, self._term)
        if inspect.iscoroutinefunction(value):
            return functools.partial(self._call_async, name)
        return functools.partial(self._call, name) if inspect.ismethod(value) else value

    async def _call_async(self, name: str, *args: object, **kwargs: object) -> object:
        if (method := self._method(name)) is None:
            return None
        call = asyncio.ensure_future(method(*args, **kwargs))
        self._term.calls.add(call)
        call.add_done_callback(self._term.calls.discard)
        try:
            return await call
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._term.end is None or (caller is not None and caller.cancelling()):
                raise
            raise self._term.end from None

    def _call(self, name: str, *args: object, **kwargs: object) -> object:
        return method(*args, **kwargs) if (method := self._method(name)) is not None else None

    def _method(self, name: str) -> Any:
        if self._term.end is None:
            return getattr(self._lent, name)
        if name in _DONE_ANYWAY:
            return None
        raise self._term.end
