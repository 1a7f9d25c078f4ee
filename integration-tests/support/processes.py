"""A test's processes: their ids, and waiting until they are at rest."""

import contextlib
from collections.abc import Callable

import anyio
import psutil

from cc_model import ClaudeCodeProvider

# Seconds. The CLI ends a turn milliseconds after the answer; a busy machine may take many seconds.
_SETTLED_WITHIN = 30.0


_older: set[psutil.Process] = set()


def of_others() -> set[psutil.Process]:
    """Record the running processes as other tests', which `processes()` does not count; return them."""
    _older.clear()
    _older.update(psutil.Process().children(recursive=True))
    return _older


def processes() -> set[int]:
    """Return the ids of all processes started since the test began."""
    ids: set[int] = set()
    for child in {*psutil.Process().children(recursive=True)} - _older:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has exited since it was listed
            if child.status() != "zombie":
                ids.add(child.pid)
    return ids


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until a condition without an event holds."""
    with anyio.fail_after(_SETTLED_WITHIN):
        while not condition():  # noqa: ASYNC110  # there is no event for it
            await anyio.sleep(0.005)


def is_at_rest(provider: ClaudeCodeProvider) -> bool:
    return provider.transport.stats().is_at_rest


async def at_rest(provider: ClaudeCodeProvider) -> list[int]:
    """Wait until all processes are idle, and return their ids."""
    await eventually(lambda: is_at_rest(provider))
    return provider.transport.pids
