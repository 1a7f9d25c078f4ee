"""Environment for the soak: the API, the processes, the folder, and the record of faults."""

import contextlib
import os
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from cc_model import ClaudeCodeProvider
from cc_session import PoolLimits, Timeouts

from .api import Api, scripted_api
from .room import Room
from .verdict import FaultRecord

BRIEF_PLACES = 2
"""Number of processes in the second provider; they end as soon as they are idle."""
_BRIEF_SECONDS = 0.3
# A single fault is tolerated, and two in a row are not.
_RETRIES = 1
# Seconds. A busy machine may delay a process for long, and a hanging process is detected all the same.
_TIMEOUTS = Timeouts(connect=90, control=60, mcp=90)


@dataclass
class Ground:
    """Targets for the faults."""

    api: Api
    providers: Sequence[ClaudeCodeProvider]
    room: Room
    begun: int = 0
    """Number of cases that have begun."""
    records: list[FaultRecord] = field(default_factory=list[FaultRecord])
    """All faults up to now, in order; the index is the number of an API fault."""

    def note(self, fault: str) -> FaultRecord:
        """Record that a fault begins and ends now; the caller may change the end later."""
        now = time.monotonic()
        self.records.append(record := FaultRecord(fault, now, now))
        return record

    @contextlib.asynccontextmanager
    async def lasting(self, fault: str) -> AsyncGenerator[None]:
        """Record that a fault lasts for this block."""
        record = self.note(fault)
        record.ended = float("inf")
        try:
            yield
        finally:
            record.ended = time.monotonic()


@contextlib.asynccontextmanager
async def prepared(room: Room, temporary: str, pool: int) -> AsyncGenerator[Ground]:
    async with scripted_api(temporary) as api:
        env = {**api.env, **_private_folders(room)}
        async with (
            ClaudeCodeProvider(env=env, pool=pool, max_retries=_RETRIES, timeouts=_TIMEOUTS) as steady,
            ClaudeCodeProvider(
                env=env,
                pool=PoolLimits(size=BRIEF_PLACES, prewarm=0, idle_seconds=_BRIEF_SECONDS),
                max_retries=_RETRIES,
                timeouts=_TIMEOUTS,
            ) as brief,
        ):
            yield Ground(api, [steady, brief], room)


def _private_folders(room: Room) -> dict[str, str]:
    """Return the environment with the CLI's own folders on the disk that can be filled."""
    folders = {"HOME": "home", "CLAUDE_CONFIG_DIR": "config", "CLAUDE_CODE_TMPDIR": "tmp"}
    for name in folders.values():
        os.makedirs(room.path / "cli" / name, mode=0o700)
    return {variable: str(room.path / "cli" / name) for variable, name in folders.items()}
