"""Ctrl-C and `kill`: they end the work, and not the clean-up after it."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, Self, TypeVar

T = TypeVar("T")

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class StoppedBySignal(Exception):
    """A signal ended the work."""


class Signals:
    """Signal handlers that end the call to `work()`, and nothing else. Only in the main thread.

    The caller closes resources undisturbed. Further signals change nothing: closing has timeouts, and ending it early
    would leave processes behind.
    """

    def __init__(self) -> None:
        self._received: int | None = None
        self._cancel: Callable[[], object] = lambda: None
        self._former_handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._former_handlers = {number: signal.signal(number, self._receive) for number in _NUMBERS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former_handlers.items():
            signal.signal(number, handler)

    @property
    def exit_code(self) -> int:
        """Exit code that a shell expects after the signal; 0 without a signal."""
        return 0 if self._received is None else 128 + self._received

    async def work(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work`.

        Raises:
            StoppedBySignal: A signal came, now or before.
        """
        task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
        # From a signal handler, only this call wakes the loop.
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if self._received is not None:
            task.cancel()
        try:
            return await task
        except (Exception, asyncio.CancelledError) as error:
            # The work may fail when it is cancelled.
            if self._received is None:
                raise
            raise StoppedBySignal from error
        finally:
            self._cancel = lambda: None

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._received is None:
            self._received = number
            self._cancel()
