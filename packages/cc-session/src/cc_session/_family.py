"""The processes that a CLI has started, and those that they have started: tools, their children, MCP servers.

The CLI gives each command of a tool a process group of its own, and a command can leave the CLI's descendants
altogether, as daemons do. So besides the descendants of a process there is a mark in its environment, which all that it
starts inherit. Environments are read from `/proc`; where there is none, a process that has left is not found.
"""

import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["MARK", "end_all", "family_of"]

MARK = "CC_SESSION_FOLDER"
"""The environment variable that says to which session a process belongs: the path of its private folder."""

_PROC = Path("/proc")

# Listing all processes takes some hundredths of a second. A machine that cannot do it in this time has other worries.
_PS_SECONDS = 2.0

# How often to look whether processes have gone.
_POLL_SECONDS = 0.01


def family_of(pid: int, folder: Path) -> set[int]:
    """The ids of all running processes that descend from `pid` or carry the mark of `folder`, `pid` itself aside."""
    if os.name != "posix":
        return set()
    parents = _parents_from_proc() if _has_proc() else _parents_from_ps()
    mark = f"{MARK}={folder}".encode()
    found = _descendants(pid, parents)
    if _has_proc():
        found |= {other for other in parents if other not in found and _has_mark(other, mark)}
    return found - {pid, os.getpid()}


def end_all(pids: Collection[int], seconds: float) -> None:
    """Tell processes to end, and kill those that have not after `seconds`. Blocks for as long."""
    _send(signal.SIGTERM, pids)
    deadline = time.monotonic() + seconds
    while pids and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        pids = [pid for pid in pids if _is_running(pid)]
    _send(signal.SIGKILL, pids)


def _send(number: signal.Signals, pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _descendants(pid: int, parents: dict[int, int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    found: set[int] = set()
    new = [pid]
    while new:
        new = [child for parent in new for child in children.get(parent, ()) if child not in found]
        found.update(new)
    return found


def _has_proc() -> bool:
    return (_PROC / "self" / "environ").exists()


def _parents_from_proc() -> dict[int, int]:
    parents: dict[int, int] = {}
    for name in os.listdir(_PROC):
        if name.isdigit() and (stat := _stat(int(name))) is not None and stat[0] != "Z":
            parents[int(name)] = int(stat[1])
    return parents


def _parents_from_ps() -> dict[int, int]:
    try:
        output = subprocess.run(
            ["ps", "-A", "-o", "pid=", "-o", "ppid="], capture_output=True, text=True, timeout=_PS_SECONDS, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = [line.split() for line in output.splitlines()]
    return {int(pair[0]): int(pair[1]) for pair in pairs if len(pair) == 2}


def _has_mark(pid: int, mark: bytes) -> bool:
    with suppress(OSError):
        return mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    return False


def _is_running(pid: int) -> bool:
    if _has_proc():
        stat = _stat(pid)
        return stat is not None and stat[0] != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _stat(pid: int) -> list[str] | None:
    """State, parent and so on; the name before them can hold anything."""
    with suppress(OSError):
        return (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return None
