"""The processes of a test: which there are, and when they have come to rest."""

from collections.abc import Callable

import anyio
import psutil

from cc_model import ClaudeCodeProvider

# The CLI ends a turn within milliseconds of the answer's end; a busy machine may take seconds.
_SETTLED_WITHIN = 10.0


def processes() -> set[int]:
    """The ids of all processes that this one has started."""
    return {child.pid for child in psutil.Process().children(recursive=True) if child.status() != "zombie"}


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until something holds that nothing tells of."""
    with anyio.fail_after(_SETTLED_WITHIN):
        while not condition():  # noqa: ASYNC110  # there is no event for it
            await anyio.sleep(0.005)


async def at_rest(provider: ClaudeCodeProvider) -> list[int]:
    """Wait until no process has anything left to do, and return their ids."""
    await eventually(lambda: "busy=0 starting=0" in repr(provider.transport))
    return provider.transport.pids
