"""All child processes of a CLI, direct and indirect: tools, their children, MCP servers. And the watchdog over them.

The CLI gives each command that a tool runs a new process group, and a command can detach from the process tree, as
daemons do. So the search also uses two marks, which all child processes inherit: an environment variable, and on Linux
a resource limit, which stays without an environment. On a system that shows neither, the search misses a detached
process.

A CLI ends when stdin is closed, but not before the turn ends, and a turn can last for hours. So a shell, the watchdog,
waits beside the CLI, in a separate POSIX session: for a release message from us, or for the end of the shell's stdin,
which comes with our death, however we die. Then it ends the same processes and deletes the folder. Without a POSIX
shell there is no watchdog.
"""

import hashlib
import os
import sys
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL

import anyio
import psutil

from ..background import in_forked_child

MARK = "CC_SESSION_FOLDER"
"""Environment variable that identifies a process's session, by the path of the private folder."""

# Least value of the limit, in microseconds that a process with a realtime priority may run without a pause: thousands
# of years, which none reaches.
_LEAST = 1 << 60

# Interval between checks for ended processes.
_POLL_SECONDS = 0.01

# Signals from a terminal must not end the watchdog before the work is done. All processes get TERM, and KILL after half
# a second; the search takes time on a busy machine.
_SCRIPT = """
trap '' HUP INT QUIT TERM
read -r _ && exit
tree() {
    ps -A -o pid= -o ppid= -o stat= | awk -v root="$1" '
        { parent[$1] = $2 }
        $3 !~ /^Z/ { running[$1] }
        END { for (pid in running) { p = pid; while (p > 1 && p != root) p = parent[p]; if (p == root) print pid } }'
    { grep -lsF "$3=$2" /proc/[0-9]*/environ; grep -ls "realtime timeout *$4 " /proc/[0-9]*/limits; } | tr -dc '0-9\n'
}
for signal in TERM KILL KILL; do
    for pid in $(tree "$@") "$1"; do
        kill -"$signal" "$pid"
    done
    for seconds in 0.1 0.2 0.2; do
        sleep "$seconds"
        [ "$(tree "$@")" ] || break 2
    done
done
rm -rf -- "$2"
"""

# A released shell only has to read a line and exit.
_RELEASE_SECONDS = 1.0


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
    for candidate in psutil.pids():
        with suppress(psutil.Error, OSError):
            if candidate not in processes and _is_marked(process := psutil.Process(candidate), str(folder), limit):
                processes[candidate] = process
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


async def start_watchdog(pid: int, folder: Path) -> Callable[[], Awaitable[None]]:
    """Start a watchdog over the process `pid` and the folder; return the function that ends it, within a second.

    Raises:
        OSError: There is no POSIX shell.
    """
    stdin, stdin_to_write = os.pipe()
    _stdins.add(stdin_to_write)
    try:
        arguments = (_SCRIPT, "claude-code-guard", str(pid), str(folder), MARK, str(limit_of(folder)))
        shell = await anyio.open_process(
            ["/bin/sh", "-c", *arguments],
            stdin=stdin,
            stdout=DEVNULL,
            stderr=DEVNULL,
            # Nothing else: our environment may hold keys.
            env={"PATH": os.environ.get("PATH", os.defpath)},
            # A signal to our session must not reach it.
            start_new_session=True,
        )
    except BaseException:
        _stdins.discard(stdin_to_write)
        os.close(stdin_to_write)
        raise
    finally:
        os.close(stdin)

    async def release() -> None:
        if stdin_to_write in _stdins:
            _stdins.discard(stdin_to_write)
            with suppress(BrokenPipeError):
                os.write(stdin_to_write, b"\n")
            os.close(stdin_to_write)
            with anyio.move_on_after(_RELEASE_SECONDS):
                await shell.wait()

    return release


# Our ends of the watchdogs' stdin. A watchdog works when no process has its end open any more.
_stdins: set[int] = set()


def _disown_all() -> None:
    """Close the file descriptors: otherwise the watchdogs would also wait for this child's death."""
    for stdin in _stdins:
        os.close(stdin)
    _stdins.clear()


in_forked_child(_disown_all)
