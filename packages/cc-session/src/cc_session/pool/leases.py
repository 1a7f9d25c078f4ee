"""A lease of a process."""

import asyncio

from .launch import Launch
from .worker import Worker

__all__ = ["Lease"]


class Lease:
    """A request for a process, until the process is returned."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.is_over = False
        self.worker: Worker | None = None
        self.coming: asyncio.Future[Worker] | None = None
        """Set while the lease waits."""
        self.asked_at = 0.0
        """Time when it asked for a process, on the monotonic clock."""
        self.queue_length = 0
        """Number of leases that waited before it at that time."""
        self.wait_seconds = 0.0
        """Time until it got a process, a start included."""

    async def prepare(self, worker: Worker) -> None:
        """Make a process ready. If it fails, the lease gets another process."""
        await worker.prepare(self.launch)
