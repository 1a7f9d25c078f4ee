"""Where it all happens: the API, the processes, the folder, and the list of what was done to them."""

import contextlib
import os
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from cc_model import ClaudeCodeProvider
from cc_session import Timeouts

from .api import Api
from .room import Room
from .verdict import Happening

BRIEF_PLACES = 2
"""How many processes the second provider has, which end as soon as they are idle."""
_BRIEF_SECONDS = 0.3
# So that one fault is got over, and two in a row are not.
_RETRIES = 1
# A busy machine may keep a process from the processor for long, and what hangs is found all the same; seconds.
_TIMEOUTS = Timeouts(connect=90, control=60, mcp=90)


@dataclass
class Ground:
    """What the faults are done to."""

    api: Api
    providers: Sequence[ClaudeCodeProvider]
    room: Room
    begun: int = 0
    """How many cases have begun."""
    happenings: list[Happening] = field(default_factory=list[Happening])
    """All that has happened, in order; the faults of the API are numbered by their place."""

    def note(self, fault: str) -> Happening:
        """Note that a fault begins now, and ends now unless somebody says otherwise."""
        now = time.monotonic()
        self.happenings.append(happening := Happening(fault, now, now))
        return happening

    @contextlib.asynccontextmanager
    async def lasting(self, fault: str) -> AsyncGenerator[None]:
        """Note that a fault is on."""
        happening = self.note(fault)
        happening.ended = float("inf")
        try:
            yield
        finally:
            happening.ended = time.monotonic()


@contextlib.asynccontextmanager
async def prepared(room: Room, temporary: str, pool: int) -> AsyncGenerator[Ground]:
    """Have the API and the processes ready, and end them."""
    async with Api(temporary) as api:
        env = {**api.env, **_private_folders(room)}
        async with (
            ClaudeCodeProvider(env=env, pool=pool, max_retries=_RETRIES, timeouts=_TIMEOUTS) as steady,
            ClaudeCodeProvider(
                env=env, pool=BRIEF_PLACES, idle_seconds=_BRIEF_SECONDS, max_retries=_RETRIES, timeouts=_TIMEOUTS
            ) as brief,
        ):
            yield Ground(api, [steady, brief], room)


def _private_folders(room: Room) -> dict[str, str]:
    """Where the CLI keeps what is its own: on the disk that can be full."""
    folders = {"HOME": "home", "CLAUDE_CONFIG_DIR": "config", "CLAUDE_CODE_TMPDIR": "tmp"}
    for name in folders.values():
        os.makedirs(room.path / "cli" / name, mode=0o700)
    return {variable: str(room.path / "cli" / name) for variable, name in folders.items()}
