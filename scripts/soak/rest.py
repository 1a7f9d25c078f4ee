"""What is left when nothing is being done: processes, files, descriptors, tasks, futures.

Each look gives plain lines, one for each thing that should not be there; no line is good news.
"""

import asyncio
import contextlib
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from cc_model import ClaudeCodeProvider

# The CLI ends a turn within milliseconds of the answer's end, and some seconds on a busy machine. A process that was
# hit while it started takes up to that long to be given up.
REST_SECONDS = 30.0
_LOOK_EVERY = 0.1
# What is being closed has gone after this time, so that it is not taken for what is always there.
_CALM_SECONDS = 1.0
# An end of a cancelled task takes no time.
_ORPHAN_SECONDS = 5.0
# The task in which pydantic-ai runs an agent, and that in which it streams an answer.
_ORPHAN = "ScopedTask.__init__.<locals>.run"
# The CLI, a guard that ends it if this process dies, and a bridge.
_PROCESSES_PER_PLACE = 3


@dataclass(frozen=True)
class Before:
    """What was there before anything was done."""

    processes: frozenset[int]
    descriptors: int
    files: frozenset[str]
    pending: int


async def looked(folder: Path) -> Before:
    """Return what is there when all has come to rest that was just closed."""
    await asyncio.sleep(_CALM_SECONDS)
    gc.collect()
    return look(folder)


def look(folder: Path) -> Before:
    """Return what is there now."""
    return Before(frozenset(_processes()), psutil.Process().num_fds(), frozenset(_files(folder)), len(_pending()))


async def end_orphans() -> int:
    """End the tasks that pydantic-ai has left behind; returns how many there were. No run may be going on.

    A run that is cancelled in its first turns of the event loop leaves one that waits for ever, on whatever model.
    """
    orphans = [task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__qualname__", "") == _ORPHAN]
    for task in orphans:
        task.cancel()
    if orphans:
        await asyncio.wait(orphans, timeout=_ORPHAN_SECONDS)
    return len(orphans)


async def settled(providers: Sequence[ClaudeCodeProvider], places: int, before: Before) -> list[str]:
    """Wait until no process works; returns what still does, or is there beyond the pools' `places`."""

    def busy() -> list[str]:
        working = [repr(one.transport) for one in providers if not one.transport.stats().is_at_rest]
        processes = _processes() - before.processes
        too_many = len(processes) > _PROCESSES_PER_PLACE * places
        return [*working, *([f"{len(processes)} processes in {places} places"] if too_many else [])]

    return await _until_none(busy, REST_SECONDS)


async def left_over(
    before: Before, folder: Path, known: frozenset[str] = frozenset(), *, seconds: float = REST_SECONDS
) -> tuple[list[str], frozenset[str]]:
    """Wait until all is as it was before the first process.

    Args:
        before: What was there then.
        folder: Where files are looked for.
        known: Files that were told of already.
        seconds: How long to wait.

    Returns:
        What is not so, and all files that are told of now.
    """

    def left() -> list[str]:
        gc.collect()
        descriptors = psutil.Process().num_fds() - before.descriptors
        pending = _pending()
        return [
            *(f"process {_describe(pid)}" for pid in _processes() - before.processes),
            *(f"file {name}" for name in _files(folder) - before.files - known),
            *([f"{descriptors} descriptors: {_open_files()}"] if descriptors > 0 else []),
            *(map(_shortly, pending) if len(pending) > before.pending else []),
        ]

    return await _until_none(left, seconds), known | (_files(folder) - before.files)


async def _until_none(look: Callable[[], list[str]], seconds: float) -> list[str]:
    # Looks are counted, not seconds: on a starved machine they may pass before anybody else had a turn.
    for _ in range(int(seconds / _LOOK_EVERY)):
        if not look():
            return []
        await asyncio.sleep(_LOOK_EVERY)
    return look()


def _processes() -> set[int]:
    found: set[int] = set()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if child.status() != psutil.STATUS_ZOMBIE:
                found.add(child.pid)
    return found


def _files(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def _pending() -> list[asyncio.Future[Any]]:
    """The tasks and futures of all event loops of this process that are not done, but for who asks."""
    me = asyncio.current_task()
    return [one for one in gc.get_objects() if isinstance(one, asyncio.Future) and one is not me and not one.done()]


def _shortly(pending: asyncio.Future[Any]) -> str:
    return repr(pending)[:300]


def _describe(pid: int) -> str:
    try:
        return f"{pid}: {' '.join(psutil.Process(pid).cmdline())[:200]}"
    except psutil.Error as error:
        return f"{pid}: {error}"


def _open_files() -> list[str]:
    me = psutil.Process()
    return sorted([*(one.path for one in me.open_files()), *map(str, me.net_connections("all"))])
