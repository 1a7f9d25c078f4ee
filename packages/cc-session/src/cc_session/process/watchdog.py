"""A guard that ends a process, with all that it has started, when this one dies without having done so.

A CLI ends by itself when its stdin does, but not before its turn does, and a turn can last for hours; its tools run in
process groups of their own. So a shell waits beside it, in a session of its own: for a word of ours that all is well,
or for the end of its own stdin, which comes with our death, however we die. Then it deletes the process's folder, too.
It needs a POSIX shell; elsewhere there is no guard. It ends the processes of `process/process_tree.py`.
"""

import os
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL

import anyio
from anyio.abc import Process

from .process_tree import MARK

__all__ = ["Guard"]

# What a terminal sends to all its processes must not take the guard away before its work is done. All are told to end,
# and who has not after half a second is killed; looking is what takes time on a busy machine.
_SCRIPT = """
trap '' HUP INT QUIT TERM
read -r _ && exit
family() {
    ps -A -o pid= -o ppid= -o stat= | awk -v root="$1" '
        { parent[$1] = $2 }
        $3 !~ /^Z/ { running[$1] }
        END { for (pid in running) { p = pid; while (p > 1 && p != root) p = parent[p]; if (p == root) print pid } }'
    grep -lsF "$3=$2" /proc/[0-9]*/environ | tr -dc '0-9\n'
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


class Guard:
    """Watches over one process. `release()` it when that process has ended."""

    def __init__(self, shell: Process, word: int) -> None:
        self._shell = shell
        self._word = word
        _guards.add(self)

    @classmethod
    async def over(cls, pid: int, folder: Path) -> "Guard | None":
        """Start a guard over the process `pid` and its folder, where there is a POSIX shell."""
        if os.name != "posix":
            return None
        stdin, word = os.pipe()
        try:
            command = ["/bin/sh", "-c", _SCRIPT, "claude-code-guard", str(pid), str(folder), MARK]
            # In a session of its own, so that what ends our process group leaves it alone.
            shell = await anyio.open_process(
                command, stdin=stdin, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
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
        """Let the guard go. Bounded; may be called again."""
        if self not in _guards:
            return
        _guards.discard(self)
        with suppress(BrokenPipeError):
            os.write(self._word, b"\n")
        os.close(self._word)
        with anyio.move_on_after(_RELEASE_SECONDS):
            await self._shell.wait()

    def disown(self) -> None:
        """In a forked child: have the guard not wait for our end, too."""
        os.close(self._word)


_guards: set[Guard] = set()


def _disown_all() -> None:
    for guard in _guards:
        guard.disown()
    _guards.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
