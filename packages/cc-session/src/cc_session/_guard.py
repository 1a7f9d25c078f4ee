"""A guard that ends a process and deletes its folder when this one dies without having done so.

A CLI ends by itself when its stdin does, but not before its turn does, and a turn can last for hours. So a shell waits
beside it: for a word of ours that all is well, or for the end of its own stdin, which comes with our death, however
we die. It needs a POSIX shell; elsewhere there is no guard.
"""

import os
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL

import anyio
from anyio.abc import Process

__all__ = ["Guard"]

# What a terminal sends to all its processes must not take the guard away before its work is done.
_SCRIPT = """
trap '' HUP INT QUIT TERM
read -r _ && exit
if kill -TERM "$1"; then
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        sleep 0.1
        kill -0 "$1" || break
    done
    kill -KILL "$1"
fi
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
            command = ["/bin/sh", "-c", _SCRIPT, "claude-code-guard", str(pid), str(folder)]
            return cls(await anyio.open_process(command, stdin=stdin, stdout=DEVNULL, stderr=DEVNULL), word)
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
