"""All direct and indirect child processes of a CLI: tools, their children, MCP servers.

The CLI gives each command of a tool its own process group, and a command can detach from the process tree, as daemons
do. So the search also uses a mark in the environment, which all child processes inherit. On a system that does not show
environments, a detached process is not found.
"""

import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil

__all__ = ["MARK", "end_all", "family_of"]

MARK = "CC_SESSION_FOLDER"
"""Environment variable that identifies the session of a process: the path of its private folder."""

# Interval between checks for ended processes.
_POLL_SECONDS = 0.01


def family_of(pid: int | None, folder: Path) -> list[psutil.Process]:
    """Return all running processes that descend from `pid` or have the mark of `folder`, without `pid`."""
    if os.name != "posix":
        return []
    found: dict[int, psutil.Process] = {}
    with suppress(psutil.Error):
        if pid is not None:
            found = {child.pid: child for child in psutil.Process(pid).children(recursive=True)}
    # Not `process_iter`, whose cache can hold data of an earlier process with the same id.
    for other in psutil.pids():
        with suppress(psutil.Error, OSError):
            if other not in found and (process := psutil.Process(other)).environ().get(MARK) == str(folder):
                found[other] = process
    return [process for process in found.values() if process.pid not in {pid, os.getpid()} and _is_running(process)]


def end_all(processes: Collection[psutil.Process], seconds: float) -> None:
    """Terminate processes, and kill any that still run after `seconds`. Blocks for that time."""
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    deadline = time.monotonic() + seconds
    # Not `wait_procs`, which waits for an ended process until its parent reaps it.
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
