"""All direct and indirect child processes of a CLI: tools, their children, MCP servers.

The CLI gives each command that a tool runs a new process group, and a command can detach from the process tree, as
daemons do. So the search also uses two marks, which all child processes inherit: an environment variable, and on Linux
a resource limit, which stays without an environment. On a system that shows neither, the search misses a detached
process.
"""

import hashlib
import os
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil

__all__ = ["MARK", "descendants", "end_all", "limit_of", "set_limit"]

MARK = "CC_SESSION_FOLDER"
"""Environment variable that identifies a process's session, by the path of the private folder."""

# Least value of the limit, in microseconds that a process with a realtime priority may run without a pause: thousands
# of years, which none reaches.
_LEAST = 1 << 60

# Interval between checks for ended processes.
_POLL_SECONDS = 0.01


def limit_of(folder: Path) -> int:
    """Return the resource limit that identifies the processes with a private folder."""
    return _LEAST + int.from_bytes(hashlib.sha256(os.fsencode(folder)).digest()[:7], "big")


def set_limit(pid: int, folder: Path) -> None:
    """Set the limit for `folder` on a process without such a limit, before it starts others; only on Linux."""
    if sys.platform == "linux":
        with suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if process.rlimit(psutil.RLIMIT_RTTIME)[1] == psutil.RLIM_INFINITY:
                process.rlimit(psutil.RLIMIT_RTTIME, (limit_of(folder), limit_of(folder)))


def descendants(pid: int | None, folder: Path) -> list[psutil.Process]:
    """Return all running processes that descend from `pid` or have a mark for `folder`, without `pid`."""
    if os.name != "posix":
        return []
    limit = limit_of(folder)
    processes: dict[int, psutil.Process] = {}
    with suppress(psutil.Error):
        if pid is not None:
            processes = {child.pid: child for child in psutil.Process(pid).children(recursive=True)}
    # Not `process_iter`, whose cache can hold data about an earlier process with the same id.
    for other in psutil.pids():
        with suppress(psutil.Error, OSError):
            if other not in processes and _is_marked(process := psutil.Process(other), str(folder), limit):
                processes[other] = process
    return [process for process in processes.values() if process.pid not in {pid, os.getpid()} and _is_running(process)]


def _is_marked(process: psutil.Process, folder: str, limit: int) -> bool:
    if sys.platform == "linux" and process.rlimit(psutil.RLIMIT_RTTIME)[1] == limit:
        return True
    return process.environ().get(MARK) == folder


def end_all(processes: Collection[psutil.Process], seconds: float) -> None:
    """Terminate processes, and kill any that still run after `seconds`. Blocks until then."""
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    deadline = time.monotonic() + seconds
    # Not `wait_procs`, which waits for an ended process until the parent reaps it.
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
