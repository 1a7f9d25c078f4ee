"""Cancelling at each await: drive a coroutine step by step, and cancel the task at a chosen await."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Watch:
    """Counts the awaits that suspend a coroutine, and cancels the task at a chosen await."""

    def __init__(self) -> None:
        self.begin("")

    def begin(self, part: str, *, cancel_at: int | None = None) -> None:
        """Begin to count the awaits in a part of the work."""
        self.part = part
        self.place = ""
        """The last await's function and line."""
        self._cancel_at = cancel_at
        self._count: int = 0

    @property
    def has_cancelled(self) -> bool:
        return self._cancel_at is not None and self._count > self._cancel_at

    def visit(self, coroutine: object) -> None:
        if self._cancel_at == self._count:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            self.place = _place(coroutine)
        self._count += 1

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine, and count."""
        return await _Stepped(coroutine, coroutine, self)

    async def iterate(self, iterator: AsyncIterator[T]) -> AsyncIterator[T]:
        """Read an asynchronous generator, and count the awaits in all steps."""
        try:
            while True:
                try:
                    yield await _Stepped(iterator.__anext__(), iterator, self)
                except StopAsyncIteration:
                    return
        finally:
            await cast("AsyncGenerator[T]", iterator).aclose()


class _Stepped(Awaitable[T]):
    def __init__(self, work: Awaitable[T], source: object, watch: Watch) -> None:
        self._work, self._source, self._watch = work, source, watch

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self._work.__await__()
        step: Callable[[], Any] = partial(next, steps)
        while True:
            try:
                future = step()
            except StopIteration as stop:
                return stop.value
            self._watch.visit(self._source)
            try:
                value = yield future
            except BaseException as error:
                step = partial(steps.throw, error)
            else:
                step = partial(steps.send, value)


def _place(work: Any) -> str:
    """Return the innermost function that is suspended."""
    place = type(work).__name__
    while work is not None:
        frame = next((frame for name in ("cr_frame", "ag_frame") if (frame := getattr(work, name, None))), None)
        if frame is not None:
            place = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
        work = next((inner for name in ("cr_await", "ag_await") if (inner := getattr(work, name, None))), None)
    return place
