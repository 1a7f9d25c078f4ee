"""The event loop on which all Claude Code processes live, in a thread of its own.

The SDK's client works only on the loop that connected it, and its cancel scopes must never meet a caller's. So there
is one loop per Python process for them all, started when it is first needed, and callers from any thread and any
asyncio loop reach it here. This module knows nothing of sessions: what must happen before the loop ends is registered
with `at_exit`.
"""

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

__all__ = ["at_exit", "on_background", "portal"]

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)


class _Background:
    """The running thread: its portal, its loop, and what to do before it ends."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.portal: BlockingPortal = self._stack.enter_context(start_blocking_portal("asyncio", name="claude-code"))
        self.loop: asyncio.AbstractEventLoop = self.portal.call(asyncio.get_running_loop)

    def stop(self) -> None:
        for clean_up in _at_exit:
            try:
                self.portal.call(clean_up)
            except Exception:
                logger.exception("Cleaning up the Claude Code background thread failed")
        self._stack.close()


_lock = threading.Lock()
_current: _Background | None = None
_at_exit: list[Callable[[], Awaitable[None]]] = []


def _background() -> _Background:
    global _current
    with _lock:
        if _current is None:
            _current = _Background()
        return _current


def portal() -> BlockingPortal:
    """Return the portal to the background loop; starts its thread if none runs."""
    return _background().portal


def at_exit(clean_up: Callable[[], Awaitable[None]]) -> None:
    """Have `clean_up` awaited on the background loop when the interpreter ends. It must bound its own waits."""
    _at_exit.append(clean_up)


async def on_background(function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Await `function(*args, **kwargs)` on the background loop, from a task of any asyncio loop.

    Cancelling the caller cancels the call there too, without waiting for it to unwind.
    """
    background = _background()
    if asyncio.get_running_loop() is background.loop:
        return await function(*args, **kwargs)

    async def call() -> T:
        return await function(*args, **kwargs)

    return await asyncio.wrap_future(background.portal.start_task_soon(call))


def _stop() -> None:
    global _current
    with _lock:
        background, _current = _current, None
    if background is not None:
        background.stop()


def _forget_after_fork() -> None:
    # The thread did not come along into the child, and the processes belong to the parent.
    global _current, _lock
    _current, _lock = None, threading.Lock()


atexit.register(_stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
