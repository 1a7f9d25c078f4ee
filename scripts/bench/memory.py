"""The most memory that a process and its children have, looked at again and again."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

import psutil

# A CLI that answers once lives for a quarter of a second or longer.
_SAMPLE_SECONDS = 0.02


class Watch:
    """Watches a process while it is entered. Megabytes; memory that processes share counts in each of them."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.python = 0.0
        """The most that the process itself had."""
        self.children = 0.0
        """The most that all Claude Code processes below it had at a time."""

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
