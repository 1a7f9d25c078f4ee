"""A lease of a process, and the decision about the next step for a waiting one. Starts and ends nothing."""

import asyncio
from enum import Enum, auto

from .launch import Launch
from .worker import Worker

__all__ = ["Lease", "Step", "next_step"]


class Step(Enum):
    """Next step for a waiting lease."""

    TAKE = auto()
    """It gets a clean process that can serve it."""
    WAIT = auto()
    """It waits for a process that is starting or resetting."""
    START = auto()
    """A process is started for it, in place of idle ones if necessary, as soon as there is room."""


def next_step(*, has_idle: bool, is_coming: bool) -> Step:
    """Decide the next step for the first waiting lease. Pure.

    | clean process for it | one that is resetting or starting | step |
    | --- | --- | --- |
    | yes | | `TAKE` |
    | no | yes | `WAIT` |
    | no | no | `START` |
    """
    if has_idle:
        return Step.TAKE
    return Step.WAIT if is_coming else Step.START


class Lease:
    """A request for a process, from its creation until the process is returned.

    Args:
        launch: Start parameters of the process.
    """

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.is_over = False
        self.worker: Worker | None = None
        self.coming: asyncio.Future[Worker] | None = None
        """Set while it waits."""
        self.asked_at = 0.0
        """Time of the request for a process, on the monotonic clock."""
        self.queue_length = 0
        """Number of leases that waited before it at its request."""
        self.wait_seconds = 0.0
        """Wait for its process, a start included."""

    async def prepare(self, worker: Worker) -> None:
        """Make a process ready. If it fails, the lease gets another one.

        Raises:
            ClaudeCodeError: The process failed or refused.
        """
        await worker.prepare(self.launch)
