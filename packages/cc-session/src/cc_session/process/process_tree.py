"""The processes that a CLI has started, and those that they have started: tools, their children, MCP servers.

The CLI gives each command of a tool a process group of its own, and a command can leave the CLI's descendants
altogether, as daemons do. So besides the descendants of a process there is a mark in its environment, which all that it
starts inherit. Where a system does not show environments, a process that has left is not found.
"""

import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil

__all__ = ["MARK", "end_all", "family_of"]

MARK = "CC_SESSION_FOLDER"
"""The environment variable that says to which session a process belongs: the path of its private folder."""

# How often to look whether processes have gone.
_POLL_SECONDS = 0.01


def family_of(pid: int | None, folder: Path) -> list[psutil.Process]:
    """Return all running processes that descend from `pid` or carry the mark of `folder`, `pid` itself aside."""
    if os.name != "posix":
        return []
    found: dict[int, psutil.Process] = {}
    with suppress(psutil.Error):
        if pid is not None:
            found = {child.pid: child for child in psutil.Process(pid).children(recursive=True)}
    # Not `process_iter`, which keeps what it knew of a process id when that belonged to another process.
    for other in psutil.pids():
        with suppress(psutil.Error, OSError):
            if other not in found and (process := psutil.Process(other)).environ().get(MARK) == str(folder):
                found[other] = process
    return [process for process in found.values() if process.pid not in {pid, os.getpid()} and _is_running(process)]


def end_all(processes: Collection[psutil.Process], seconds: float) -> None:
    """Tell processes to end, and kill those that have not after `seconds`. Blocks for as long."""
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    deadline = time.monotonic() + seconds
    # Not `wait_procs`, which waits for a process that has ended until its parent looks after it.
    while processes and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        processes = [process for process in processes if _is_running(process)]
    for process in processes:
        with suppress(psutil.Error):
            process.kill()


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error as error:
        return isinstance(error, psutil.AccessDenied)
