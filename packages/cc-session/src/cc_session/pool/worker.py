"""A process in a pool, which assigns it to leases, with an adapter for what they do. Lives on the background loop."""

import time
from typing import Literal, Protocol, TypeAlias

from ..process.cli_process import Memory
from .launch import Launch
from .pooled_session import PooledSession

WorkerState: TypeAlias = Literal["idle", "busy", "resetting"]
"""Idle is clean, busy is leased, resetting is being emptied."""


class Adapter(Protocol):
    """The use of a worker's process by leases of one kind."""

    def matches(self, launch: Launch) -> bool:
        """Return true if the process, which can serve `launch`, has its settings."""
        ...

    def unfit_while_idle(self, since: float) -> str | None:
        """Return the reason why a process that is clean `since` a time can serve no lease any more, or None."""
        ...

    async def prepare(self, launch: Launch) -> None:
        """Check that the process answers, and apply the settings of `launch`."""

    @property
    def is_untouched(self) -> bool:
        """True if the lease left nothing to undo."""
        ...

    def unfit(self) -> str | None:
        """Return the reason why a reset cannot equal a fresh process, or None if it can."""
        ...

    async def reset(self) -> None:
        """Undo what the lease did; raise if that fails."""

    async def close(self) -> None:
        """End the process."""


class Worker:
    """A process in a pool."""

    def __init__(self, launch: Launch, session: PooledSession, adapter: Adapter) -> None:
        self.key = launch.key
        """The key of the launches that it can serve."""
        self.session = session
        self.adapter = adapter
        self.memory = Memory(0)
        """Memory as last measured."""
        self.uses: int = 0
        """Number of leases that got it ready."""
        self.state: WorkerState = "idle"
        self.since = time.monotonic()
        """Time when the state last changed."""
        self.started_at = self.since
        """Time when the process was ready, on the monotonic clock."""
        self.is_unsure = False
        """True if the program had other variables after its start: it serves a lease that waited, and no other."""

    def enter(self, state: WorkerState) -> None:
        """Change the state; only its pool may do so."""
        self.state, self.since = state, time.monotonic()

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self.session.pid if self.session.is_running else None

    def fits(self, launch: Launch) -> bool:
        """Return true if the process can serve `launch`, with other settings if necessary."""
        return self.key == launch.key and self.session.can_take(launch.settings)

    def preference(self, launch: Launch) -> tuple[bool, bool, float]:
        """Return a sort key: the best process needs no change, else has a prompt if `launch` has, and was used last.

        So a process that never had a system prompt, and serves all leases, is kept for leases without one.
        """
        is_like = (self.session.settings["system_prompt"] is None) == (launch.settings["system_prompt"] is None)
        return self.adapter.matches(launch), is_like, self.since

    async def close(self) -> None:
        """End a lease, and the process."""
        self.session.end_lease()
        await self.adapter.close()

    def __repr__(self) -> str:
        return f"<Worker uses={self.uses} {self.session!r}>"
