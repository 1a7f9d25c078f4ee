"""Watchdog that ends a process and all descendants if this process dies first.

A CLI ends when stdin is closed, but not before the turn ends, and a turn can last for hours; tools run in other process
groups. So a shell waits beside the CLI, in a separate POSIX session: for a release message from us, or for the end of
the shell's stdin, which comes with our death, however we die. Then it ends the processes that
`process/process_tree.py` describes and deletes the folder. Without a POSIX shell there is no watchdog.
"""

import os
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL

import anyio
from anyio.abc import Process

from ..background import in_forked_child
from .process_tree import MARK, limit_of

__all__ = ["Watchdog"]

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


class Watchdog:
    """Watchdog over one process. Call `release()` when the process has ended."""

    def __init__(self, shell: Process, stdin: int) -> None:
        self._shell = shell
        self.stdin = stdin
        """File descriptor; the shell works when no process has it open any more."""
        _watchdogs.add(self)

    @classmethod
    async def over(cls, pid: int, folder: Path) -> "Watchdog | None":
        """Start a watchdog for the process `pid` and the folder; None without POSIX shell."""
        if os.name != "posix":
            return None
        end_to_read, end_to_write = os.pipe()
        try:
            arguments = (_SCRIPT, "claude-code-guard", str(pid), str(folder), MARK, str(limit_of(folder)))
            shell = await anyio.open_process(
                ["/bin/sh", "-c", *arguments],
                stdin=end_to_read,
                stdout=DEVNULL,
                stderr=DEVNULL,
                # Nothing else: our environment may hold keys.
                env={"PATH": os.environ.get("PATH", os.defpath)},
                # A signal to our process group must not reach it.
                start_new_session=True,
            )
            return cls(shell, end_to_write)
        except BaseException as error:
            os.close(end_to_write)
            if isinstance(error, OSError):
                return None
            raise
        finally:
            os.close(end_to_read)

    async def release(self) -> None:
        """End the watchdog, within a second. Idempotent."""
        if self not in _watchdogs:
            return
        _watchdogs.discard(self)
        with suppress(BrokenPipeError):
            os.write(self.stdin, b"\n")
        os.close(self.stdin)
        with anyio.move_on_after(_RELEASE_SECONDS):
            await self._shell.wait()


_watchdogs: set[Watchdog] = set()


def _disown_all() -> None:
    """Close the file descriptors: otherwise the shells would also wait for this child's death."""
    for watchdog in _watchdogs:
        os.close(watchdog.stdin)
    _watchdogs.clear()


in_forked_child(_disown_all)
