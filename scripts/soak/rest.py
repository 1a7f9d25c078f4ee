"""Leak checks at rest: processes, files, descriptors, tasks, futures; and errors that no caller received.

Each check returns a line for each leak or error; an empty list means none.
"""

import asyncio
import gc
import logging
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from cc_model import ClaudeCodeProvider
from processes import processes

# Seconds. The CLI ends a turn milliseconds after the answer's end, or some seconds on a busy machine. A process that
# started during a fault is given up at the latest after that time.
REST_SECONDS = 30.0
_LOOK_EVERY = 0.1
# Seconds after which a closing resource is gone, so that it does not count as permanent.
_CALM_SECONDS = 1.0
# A cancelled task ends at once.
_ORPHAN_SECONDS = 5.0
# The task in which pydantic-ai runs an agent, and that in which it streams an answer.
_ORPHAN = "ScopedTask.__init__.<locals>.run"
# The CLI, a watchdog that ends it if this process dies, and a bridge.
_PROCESSES_PER_PLACE = 3
# The event loop cannot accept connections while no file can be opened; it logs this and retries a second later, also
# with a socket that was closed meanwhile.
_OF_DESCRIPTORS = ("out of system resource", "BaseSelectorEventLoop._start_serving")


@dataclass(frozen=True)
class Before:
    """Resources that existed before the first process."""

    processes: frozenset[int]
    descriptors: int
    files: set[str]
    """Also those that were reported as leaks."""
    pending: int


async def stable(folder: Path) -> Before:
    await asyncio.sleep(_CALM_SECONDS)
    gc.collect()
    return look(folder)


def look(folder: Path) -> Before:
    return Before(frozenset(processes()), len(os.listdir("/dev/fd")), {*os.listdir(folder)}, len(_pending()))


async def end_orphans() -> int:
    """Cancel the tasks that pydantic-ai has left behind, and return their number. No run may be active.

    On Python 3.11 a run that is cancelled in the event loop's first turns leaves a task that waits for ever, with any
    model.
    """
    orphans = [task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__qualname__", "") == _ORPHAN]
    for task in orphans:
        task.cancel()
    if orphans:
        await asyncio.wait(orphans, timeout=_ORPHAN_SECONDS)
    return len(orphans)


async def settled(providers: Sequence[ClaudeCodeProvider], places: int, before: Before) -> list[str]:
    """Wait until no process works; return the busy ones and those beyond the pools' `places`."""

    def busy() -> list[str]:
        working = [repr(provider.transport) for provider in providers if not provider.transport.stats().is_at_rest]
        count = len(processes() - before.processes)
        return [*working, *([f"{count} processes in {places} places"] if count > _PROCESSES_PER_PLACE * places else [])]

    return await _until_none(busy, REST_SECONDS)


async def left_over(before: Before, folder: Path, *, seconds: float = REST_SECONDS) -> list[str]:
    """Wait until the resources are the same as `before`, and return the leaks; each file is reported once."""

    def leaks() -> list[str]:
        gc.collect()
        me, descriptors = psutil.Process(), len(os.listdir("/dev/fd")) - before.descriptors
        pending = _pending()
        return [
            *(f"process {_describe(pid)}" for pid in processes() - before.processes),
            *(f"file {name}" for name in {*os.listdir(folder)} - before.files),
            *([f"{descriptors} descriptors: {me.open_files()} {me.net_connections('all')}"] if descriptors > 0 else []),
            *(repr(future)[:300] for future in pending if len(pending) > before.pending),
        ]

    lines = await _until_none(leaks, seconds)
    before.files.update(os.listdir(folder))
    return lines


async def _until_none(look: Callable[[], list[str]], seconds: float) -> list[str]:
    # Counts checks and not seconds: on a starved machine the seconds may pass before another task can run.
    for _ in range(int(seconds / _LOOK_EVERY)):
        if not look():
            return []
        await asyncio.sleep(_LOOK_EVERY)
    return look()


def _pending() -> list[asyncio.Future[Any]]:
    """Return the unfinished tasks and futures in all event loops, except the calling task."""
    me = asyncio.current_task()
    futures: list[asyncio.Future[Any]] = [item for item in gc.get_objects() if isinstance(item, asyncio.Future)]
    return [future for future in futures if future is not me and not future.done()]


def _describe(pid: int) -> str:
    try:
        return f"{pid}: {' '.join(psutil.Process(pid).cmdline())[:200]}"
    except psutil.Error as error:
        return f"{pid}: {error}"


class Noise(logging.Handler):
    """Collects errors in the event loop, exceptions in finalizers and unclosed resources until `take()`.

    All other log records are dropped.
    """

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._lines: list[str] = []

    def listen(self) -> None:
        """Start collecting; never stop."""

        def warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            if issubclass(category, ResourceWarning):
                self._lines.append(f"{category.__name__}: {message}"[:400])

        def unraisable(raised: Any) -> None:
            self._lines.append(f"{raised.err_msg or 'Ignored'} in {raised.object!r}: {raised.exc_value!r}"[:400])

        # The SDK logs each process that exits early, which is expected here.
        logging.getLogger().addHandler(logging.NullHandler())
        logging.getLogger("asyncio").addHandler(self)
        warnings.simplefilter("always", ResourceWarning)
        warnings.showwarning = warn
        sys.unraisablehook = unraisable

    def take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if not any(words in message for words in _OF_DESCRIPTORS):
            error = record.exc_info[1] if record.exc_info else None
            self._lines.append(f"{message[:400]} {error!r}")
