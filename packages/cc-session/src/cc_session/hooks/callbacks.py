"""Calling what a caller gave: hooks, predicates and permission callbacks, from the background loop.

A coroutine function runs on the event loop of the caller whose turn it is, where the things that it uses live. Any
other function runs in a thread of its own, so that it holds up nobody, however long it takes. Nothing here is bounded;
who calls sets the deadline, and passes it on by cancelling.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from types import MappingProxyType
from typing import TypeVar, cast

from ..background import caller_loop

__all__ = ["Callers", "in_thread", "mark_of_programs"]

T = TypeVar("T")

mark_of_programs: ContextVar[Mapping[str, str]] = ContextVar("mark_of_programs", default=MappingProxyType({}))
"""What the environment of a program is to have in it, so that it ends with the session that calls it."""

# What the loop of the processes would take for a word to itself, or what a future does not take.
_NOT_FOR_US = (asyncio.CancelledError, SystemExit, KeyboardInterrupt, StopIteration)


class QuitError(RuntimeError):
    """A callback raised what is no error where it runs."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"it raised {error!r}")


class Callers:
    """Where the callers of one session are, of which one at a time has a turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop
        self.mark: Mapping[str, str] = {}
        """The environment variable by which programs that are called end with the session."""

    def remember(self) -> None:
        """Take the loop from which the present call to the session came as that of the turn that begins."""
        self._loop = caller_loop.get()

    async def call_here(self, function: Callable[..., Awaitable[T] | T], *args: object) -> T:
        """As `call()`, but a coroutine function runs on this loop, with `mark_of_programs` set."""
        mark_of_programs.set(self.mark)
        return await Callers(None).call(function, *args)

    async def call(self, function: Callable[..., Awaitable[T] | T], *args: object) -> T:
        """Call a function, and await what it returns if that is to be awaited."""
        if not _is_async(function):
            result = await in_thread(function, *args)
            return await self._awaited(result) if inspect.isawaitable(result) else cast(T, result)
        return await self._awaited(cast("Callable[..., Awaitable[T]]", function), *args)

    async def _awaited(self, what: Awaitable[T] | Callable[..., Awaitable[T]], *args: object) -> T:
        async def run() -> T:
            try:
                return await (what(*args) if callable(what) else what)
            except _NOT_FOR_US as error:
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise
                raise QuitError(error) from error

        loop = self._loop
        if loop is None or loop is asyncio.get_running_loop():
            return await run()
        coroutine = run()
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:  # it was closed
            coroutine.close()
            raise
        return await asyncio.wrap_future(future)


async def in_thread(function: Callable[..., T], *args: object) -> T:
    """Call a function in a thread of its own. The thread does not end with a cancelled call, nor hold up an exit."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(cast(T, result))
        else:
            outcome.set_exception(error)

    def run() -> None:
        result, failure = None, None
        try:
            result = context.run(function, *args)
        except _NOT_FOR_US as error:
            failure = QuitError(error)
        except BaseException as error:
            failure = error
        with suppress(RuntimeError):  # the loop was closed, and nobody waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="claude-code-callback", daemon=True).start()
    return await outcome


def _is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
