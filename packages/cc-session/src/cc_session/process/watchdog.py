"""Watchdog that ends a process, with its process tree, if this process dies before it.

A CLI ends by itself with its stdin, but not before its turn ends, and a turn can last for hours; its tools run in their
own process groups. So a shell waits beside it, in its own POSIX session: for a release message from us, or for the end
of its own stdin, which comes with our death, however we die. Then it ends the processes of `process/process_tree.py`
and deletes the process's folder. It needs a POSIX shell; elsewhere there is no watchdog.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL

import anyio
from anyio.abc import Process

from .process_tree import MARK, limit_of

__all__ = ["Watchdog"]

# Signals of a terminal to all its processes must not end the watchdog before its work is done. All processes get TERM,
# and KILL after half a second; the search takes time on a busy machine.
_SCRIPT = """
trap '' HUP INT QUIT TERM
read -r _ && exit
family() {
    ps -A -o pid= -o ppid= -o stat= | awk -v root="$1" '
        { parent[$1] = $2 }
        $3 !~ /^Z/ { running[$1] }
        END { for (pid in running) { p = pid; while (p > 1 && p != root) p = parent[p]; if (p == root) print pid } }'
    { grep -lsF "$3=$2" /proc/[0-9]*/environ; grep -ls "realtime timeout *$4 " /proc/[0-9]*/limits; } | tr -dc '0-9\n'
}
for signal in TERM KILL KILL; do
    for pid in $(family "$@") "$1"; do
        kill -"$signal" "$pid"
    done
    for seconds in 0.1 0.2 0.2; do
        sleep "$seconds"
        [ "$(family "$@")" ] || break 2
    done
done
rm -rf -- "$2"
"""

# It only has to read a line and exit.
_RELEASE_SECONDS = 1.0


class Watchdog:
    """Watchdog of one process. Call `release()` when it has ended."""

    def __init__(self, shell: Process, word: int) -> None:
        self._shell = shell
        self._word = word
        _guards.add(self)

    @classmethod
    async def over(cls, pid: int, folder: Path) -> "Watchdog | None":
        """Start a watchdog for the process `pid` and its folder; None without POSIX shell."""
        if os.name != "posix":
            return None
        stdin, word = os.pipe()
        try:
            command = [
                "/bin/sh",
                "-c",
                _SCRIPT,
                "claude-code-guard",
                str(pid),
                str(folder),
                MARK,
                str(limit_of(folder)),
            ]
            # Our environment may hold keys.
            env = {"PATH": os.environ.get("PATH", os.defpath)}
            # In its own session, so that a signal to our process group does not reach it.
            shell = await anyio.open_process(
                command, stdin=stdin, stdout=DEVNULL, stderr=DEVNULL, env=env, start_new_session=True
            )
            return cls(shell, word)
        except BaseException as error:
            os.close(word)
            if isinstance(error, OSError):
                return None
            raise
        finally:
            os.close(stdin)

    async def release(self) -> None:
        """End the watchdog. Bounded and idempotent."""
        if self not in _guards:
            return
        _guards.discard(self)
        with suppress(BrokenPipeError):
            os.write(self._word, b"\n")
        os.close(self._word)
        with anyio.move_on_after(_RELEASE_SECONDS):
            await self._shell.wait()

    def disown(self) -> None:
        """Stop the watchdog from waiting for this forked child."""
        os.close(self._word)


_guards: set[Watchdog] = set()


def _disown_all() -> None:
    for watchdog in _guards:
        watchdog.disown()
    _guards.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_disown_all)
