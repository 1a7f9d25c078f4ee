"""How the background loop calls a caller's hooks, predicates and permission callbacks.

A coroutine function runs on the event loop of the turn's caller, where its resources live. Any other function runs in a
new thread, so that it delays nothing else, however long it takes. Calls have no time limit here: the calling code sets
one and cancels the call.
"""

import asyncio
import contextvars
import inspect
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from types import MappingProxyType
from typing import TypeVar, cast

__all__ = ["CallbackRunner", "in_thread", "mark_of_programs"]

T = TypeVar("T")

mark_of_programs: ContextVar[Mapping[str, str]] = ContextVar("mark_of_programs", default=MappingProxyType({}))
"""Environment variables for a hook program, so that it ends with the session that calls it."""

# Exceptions that would stop the background loop, or that a future does not accept.
_NOT_FOR_US = (asyncio.CancelledError, SystemExit, KeyboardInterrupt, StopIteration)


class QuitError(RuntimeError):
    """A callback raised an exception in `_NOT_FOR_US`."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"it raised {error!r}")


# A turn's hooks are called during the turn, or shortly after an abandoned turn.
_TURNS_REMEMBERED = 100


class CallbackRunner:
    """Calls functions on the event loop of the session's caller; one caller at a time has a turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop = loop
        """Loop of the caller of the turn that began last."""
        self._loops: OrderedDict[str, asyncio.AbstractEventLoop | None] = OrderedDict()
        self.mark: Mapping[str, str] = {}
        """Environment variable that makes called programs end with the session."""

    async def call_here(self, _turn: str | None, function: Callable[..., Awaitable[T] | T], *args: object) -> T:
        """Call as `call()`, but run a coroutine function on this loop; set `mark_of_programs`."""
        mark_of_programs.set(self.mark)
        return await CallbackRunner(None).call(None, function, *args)

    async def call(self, turn: str | None, function: Callable[..., Awaitable[T] | T], *args: object) -> T:
        """Call a function, and await its result if it is awaitable.

        `turn` is the CLI's `prompt_id`: a late call about an earlier turn goes to that turn's caller. An old CLI sends
        no id; then the last turn counts.
        """
        loop = self._loop_of(turn)
        if not _is_async(function):
            result = await in_thread(function, *args)
            return await _awaited(loop, result) if inspect.isawaitable(result) else cast(T, result)
        return await _awaited(loop, cast("Callable[..., Awaitable[T]]", function), *args)

    def _loop_of(self, turn: str | None) -> asyncio.AbstractEventLoop | None:
        if turn is None:
            return self.loop
        loop = self._loops.setdefault(turn, self.loop)
        if len(self._loops) > _TURNS_REMEMBERED:
            self._loops.popitem(last=False)
        return loop


async def _awaited(
    loop: asyncio.AbstractEventLoop | None, work: Awaitable[T] | Callable[..., Awaitable[T]], *args: object
) -> T:
    async def run() -> T:
        try:
            return await (work(*args) if callable(work) else work)
        except _NOT_FOR_US as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            raise QuitError(error) from error

    if loop is None or loop is asyncio.get_running_loop():
        return await run()
    coroutine = run()
    try:
        future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError:  # the loop was closed
        coroutine.close()
        raise
    return await asyncio.wrap_future(future)


async def in_thread(function: Callable[..., T], *args: object) -> T:
    """Call a function in a new thread, which does not end with a cancelled call, nor delay an exit."""
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
        with suppress(RuntimeError):  # the loop was closed; no task waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name="claude-code-callback", daemon=True).start()
    return await outcome


def _is_async(function: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
