"""The event loop on which all Claude Code processes live, in a separate thread.

The SDK client works only on the loop that connected it, and its cancel scopes must never meet a caller's. So a Python
process has a single loop for them, started at the first use, which callers from any thread and any asyncio loop reach
here. Sessions are unknown here: `at_exit` registers work for the end of the loop. Work in threads goes through anyio
(with `abandon_on_cancel`, if the caller need not wait): Python 3.12.0 and 3.12.1 cannot end asyncio threads at exit.

A forked child has no such loop, and all CLI processes belong to its parent. Each module with such state drops it in the
child by `in_forked_child`: this module, and in `process/` `link.py`, `cli_process.py` and `process_tree.py`.
`pool/pool.py` lets a pool go on in the child with new processes.
"""

import asyncio
import atexit
import functools
import logging
import os
import sys
import threading
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, ParamSpec, TypeVar

from typing_extensions import override

from cc_types import ClaudeCodeError

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

# Sessions close at the same time, each within a few seconds; the interpreter must end even if one of them hangs.
_EXIT_SECONDS = 15.0


class _Timers(asyncio.BaseEventLoop):
    """A loop whose timers have no context: a cancelled one stays up to its time, and would keep a caller's objects."""

    @override
    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return super().call_at(when, callback, *args, context=Context() if context is None else context)


# asyncio's standard loop, whatever event loop policy the program has. A policy such as uvloop's may be installed at any
# time. Before Python 3.14 asyncio asks the policy for the watcher that notices the end of a child process. uvloop's
# policy has none, so that processes could not be started any more.
if sys.platform == "win32":

    class BackgroundLoop(_Timers, asyncio.ProactorEventLoop):
        """asyncio's loop."""

else:
    _unix: Any = asyncio.unix_events

    class BackgroundLoop(_Timers, asyncio.SelectorEventLoop):
        """asyncio's loop, which starts each process in a process group of its own.

        A terminal's Ctrl-C, and a notebook's, goes to a whole process group. It would end the processes that later
        requests need, and the SDK has no option against it. Not in a session of its own: Linux schedules these apart.

        Before Python 3.14 it also has a private child watcher, the default kind in this Python version. The override
        replaces the only method that asks the policy. `tests/test_background.py` notices when it changes; with a plain
        `SelectorEventLoop`, processes start under policies that have a watcher.
        """

        @override
        async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
            loop: Any = super()
            # A new session has a new group.
            group = {} if options.get("start_new_session") else {"process_group": 0}
            return await loop.subprocess_exec(*args, **options | group)

        if sys.version_info < (3, 14):

            def __init__(self) -> None:
                super().__init__()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)
                    self._watcher = asyncio.DefaultEventLoopPolicy().get_child_watcher()

            async def _make_subprocess_transport(
                self, protocol: Any, args: Any, shell: Any, stdin: Any, stdout: Any, stderr: Any, bufsize: Any,
                **more: Any,
            ) -> Any:  # fmt: skip
                loop: Any = self
                ready = self.create_future()
                transport = _unix._UnixSubprocessTransport(
                    self, protocol, args, shell, stdin, stdout, stderr, bufsize, waiter=ready, **more
                )
                self._watcher.add_child_handler(transport.get_pid(), loop._child_watcher_callback, transport)
                try:
                    await ready
                except BaseException:
                    transport.close()
                    await transport._wait()
                    raise
                return transport


class _Background:
    """The running thread and its loop."""

    def __init__(self) -> None:
        self._is_over = asyncio.Event()
        started: Future[asyncio.AbstractEventLoop] = Future()
        self.thread = threading.Thread(target=self._serve, args=(started,), name="claude-code", daemon=True)
        self.thread.start()
        self.loop = started.result()
        # The loop itself keeps only weak references to its tasks.
        self._tasks: set[asyncio.Task[object]] = set()

    def _serve(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        async def serve() -> None:
            started.set_result(asyncio.get_running_loop())
            await self._is_over.wait()

        try:
            with asyncio.Runner(loop_factory=BackgroundLoop) as runner:
                runner.run(serve())
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
            raise

    def call(self, loop: asyncio.AbstractEventLoop | None, function: Callable[[], Awaitable[T]]) -> Future[T]:
        """Start a call for a caller on `loop`; runs on any thread."""

        async def call() -> T:
            caller_loop.set(loop)
            return await function()

        return _start_on(self.loop, call())

    def start(self, function: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Start a task; runs on the loop."""
        task = self.loop.create_task(function())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Clean up and end the thread."""
        for clean_up in reversed(_at_exit):
            try:
                self.call(None, clean_up).result(_EXIT_SECONDS)
            except Exception:
                logger.exception("Cleaning up the Claude Code background thread failed")
        # The runner cancels the remaining tasks: their waiting callers would never be resumed.
        self.loop.call_soon_threadsafe(self._is_over.set)
        self.thread.join(_EXIT_SECONDS)


async def await_on(
    loop: asyncio.AbstractEventLoop | None, coroutine: Coroutine[Any, Any, T], context: Context | None = None
) -> T:
    """Await a coroutine of a caller on `loop`, or here if None, in `context`; a process waits meanwhile.

    Raises:
        RuntimeError: The loop was closed.
    """
    here, context = asyncio.get_running_loop(), awaited_context(context)
    if loop is None or loop is here:
        return await here.create_task(coroutine, context=context)
    return await asyncio.wrap_future(context.run(_start_on, loop, coroutine))


def _start_on(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError:
        coroutine.close()
        raise


caller_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("caller_loop", default=None)
"""Event loop that awaits the current call; None if the caller blocks its thread."""

process_waits: ContextVar[bool] = ContextVar("process_waits", default=False)
"""True in a caller's code that a process waits for, such as a tool."""


def awaited_context(context: Context | None = None) -> Context:
    """Return a copy of a context, by default the present one, for code that a process waits for."""
    context = copy_context() if context is None else context.copy()
    context.run(process_waits.set, True)
    return context


_lock = threading.Lock()
_current: _Background | None = None
_at_exit: list[Callable[[], Awaitable[None]]] = []


def _background() -> _Background:
    global _current
    if (background := _current) is not None:
        return background
    with _lock:
        if _current is None:
            _current = _Background()
        return _current


def at_exit(clean_up: Callable[[], Awaitable[None]]) -> None:
    """Await `clean_up`, which must limit its waits, on the background loop when Python ends; the last added first."""
    _at_exit.append(clean_up)


async def on_background(function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Await `function(*args, **kwargs)` on the background loop, from a task on any asyncio loop.

    Cancelling the caller cancels the call there too, without waiting for it to unwind.
    """
    background = _background()
    loop = asyncio.get_running_loop()
    if loop is background.loop:
        return await function(*args, **kwargs)
    return await asyncio.wrap_future(background.call(loop, functools.partial(function, *args, **kwargs)))


def run_on_background(function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Await `function(*args, **kwargs)` on the background loop, while this thread waits.

    The thread may have a running event loop, which stops meanwhile. An interrupted wait cancels the call.

    Raises:
        RuntimeError: This is the background loop thread, which cannot wait for itself.
    """
    background = _background()
    if threading.current_thread() is background.thread:
        raise RuntimeError("The thread that runs Claude Code's hooks and tools cannot wait for it; use `await`")

    future = background.call(None, functools.partial(function, *args, **kwargs))
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def start_on_background(function: Callable[P, Coroutine[Any, Any, object]], *args: P.args, **kwargs: P.kwargs) -> None:
    """Start `function(*args, **kwargs)` on the background loop, from any thread, and wait for nothing."""
    background = _background()
    background.loop.call_soon_threadsafe(background.start, functools.partial(function, *args, **kwargs))


def tell_background(function: Callable[P, Coroutine[Any, Any, object]], *args: P.args, **kwargs: P.kwargs) -> None:
    """Call `start_on_background()`, or do nothing if there is no background loop, so that finalizers may use it.

    They run in any thread at any moment, so this takes no lock, and starts no thread when the interpreter is ending.
    """
    if _current is not None:
        with suppress(RuntimeError):  # the loop was closed a moment ago
            start_on_background(function, *args, **kwargs)


@asynccontextmanager
async def time_limit(seconds: float | None, error: Callable[[], Exception]) -> AsyncGenerator[None]:
    """Raise `error()` if the block takes longer than `seconds`, with None never. Errors from inside pass."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as timeout:
        if isinstance(timeout, ClaudeCodeError):
            raise
        raise error() from timeout


def _stop() -> None:
    # `_current` stays as it is: clean-up must not start another loop.
    if (background := _current) is not None:
        background.stop()


# Current loop in the thread that forks. A child must not close it: on Linux parent and child share the loop epoll
# object, and the parent could no longer wake its loop. Without this reference, asyncio from Python 3.12 on closes it.
_inherited: list[object] = []


def _loop_policy() -> Any:
    # Public functions would create a policy, and its loop.
    return getattr(asyncio.events, "_event_loop_policy", None)


def _before_fork() -> None:
    _inherited.append(getattr(getattr(_loop_policy(), "_local", None), "_loop", None))


def _after_fork_in_child() -> None:
    global _current, _lock
    _current, _lock = None, threading.Lock()
    if sys.version_info < (3, 12) and hasattr(policy := _loop_policy(), "_local"):
        # As later versions do: two processes with the same loop take each other's events.
        policy._local = type(policy._local)()


def in_forked_child(function: Callable[[], object]) -> None:
    """Call `function` in each forked child, in the order of registration."""
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=function)


atexit.register(_stop)
in_forked_child(_after_fork_in_child)
if sys.platform != "win32":
    os.register_at_fork(before=_before_fork, after_in_parent=_inherited.pop)
