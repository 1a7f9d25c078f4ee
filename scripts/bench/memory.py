"""Peak memory of a process and its children, by frequent sampling."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

import psutil

# A CLI with a single answer lives for at least a quarter of a second.
_SAMPLE_SECONDS = 0.02


class Watch:
    """Samples the memory of a process while entered. In megabytes; shared memory counts in each process."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.python = 0.0
        """Peak of the process itself."""
        self.children = 0.0
        """Peak of all Claude Code processes below it together."""

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._look_often())
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._look()

    async def _look_often(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(_SAMPLE_SECONDS)

    def _look(self) -> None:
        self.python = max(self.python, _resident(self._process))
        children = [child for child in self._process.children(recursive=True) if _is_cli(child)]
        self.children = max(self.children, sum(map(_resident, children)))


def _is_cli(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.name().startswith("claude")
    return False


def _resident(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):
        return process.memory_info().rss / 1e6
    return 0.0
