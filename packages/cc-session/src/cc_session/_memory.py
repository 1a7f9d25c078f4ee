"""How much memory processes take, without a library for it.

Linux tells it in `/proc`, at once; elsewhere `ps` does, in a few milliseconds, and where there is neither, nobody does.
Knows process ids and nothing of sessions.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

__all__ = ["Memory", "memory_at_once", "memory_of"]

_PROC = Path("/proc")
_MB = 1e6

# It looks into a table of the kernel's.
_PS_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Memory:
    """The resident memory of one process, in megabytes (10^6 bytes)."""

    own: float
    """What it shares with nobody."""
    shared: float = 0.0
    """What is mapped from files, of which processes of the same program share most."""

    @property
    def resident(self) -> float:
        """All of it, as `ps` and `top` show it."""
        return self.own + self.shared


def memory_at_once(pids: Sequence[int]) -> dict[int, Memory]:
    """Return the memory of those processes that can be measured in no time."""
    return {pid: memory for pid in pids if (memory := _from_proc(pid)) is not None}


async def memory_of(pids: Sequence[int]) -> dict[int, Memory]:
    """Return the memory of those processes that can be measured."""
    if (_PROC / "self" / "statm").exists():
        return memory_at_once(pids)
    return await _from_ps(pids) if pids and os.name == "posix" else {}


def _from_proc(pid: int) -> Memory | None:
    with suppress(OSError, ValueError):
        # Not `smaps_rollup`, which knows who shares what: it takes 7 ms, during which the process cannot go on.
        _, resident, shared, *_ = map(int, (_PROC / str(pid) / "statm").read_text("ascii").split())
        page = os.sysconf("SC_PAGE_SIZE") / _MB
        return Memory((resident - shared) * page, shared * page)
    return None


async def _from_ps(pids: Sequence[int]) -> dict[int, Memory]:
    command = ["ps", "-o", "pid=,rss=", "-p", ",".join(map(str, pids))]
    try:
        ps = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL)
    except OSError:
        return {}
    try:
        async with asyncio.timeout(_PS_SECONDS):
            output, _ = await ps.communicate()
        rows = [line.split() for line in output.decode("ascii").splitlines()]
        return {int(pid): Memory(int(kilobytes) * 1024 / _MB) for pid, kilobytes in rows}
    except (TimeoutError, ValueError):
        return {}
    finally:
        if ps.returncode is None:
            ps.kill()
