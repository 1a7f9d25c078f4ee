"""Ctrl-C and `kill`, as the end of one task: what the task holds is closed as it unwinds."""

import asyncio
import signal
from collections.abc import Coroutine
from types import FrameType
from typing import Any

__all__ = ["StoppedBySignal", "run_until_signal"]


class StoppedBySignal(Exception):
    """The task was ended by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number
        """What a shell expects."""


def run_until_signal(main: Coroutine[Any, Any, None]) -> None:
    """Run `main` on an event loop of its own. Only from the main thread.

    The first SIGINT or SIGTERM cancels it; further ones change nothing, because the clean-up is bounded, and cutting it
    short would leave processes behind.

    Raises:
        StoppedBySignal: A signal came.
    """
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(main)
        received: list[int] = []

        def stop(number: int, frame: FrameType | None) -> None:
            if not received:
                loop.call_soon_threadsafe(task.cancel)
            received.append(number)

        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            raise StoppedBySignal(received[0]) from None
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
