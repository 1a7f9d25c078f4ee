"""An HTTP response on the way from the background loop to a caller on any loop.

The background side never waits for the caller, and the caller never touches the background side: between them are a
future for the head and a buffer for the body. A response may be opened, read and closed in different tasks. A caller
that needs no more calls `abandon()`, which only sets a flag.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import httpx2
from typing_extensions import override

from cc_session.internals import run_on_background, tell_background

__all__ = ["Body", "Head", "ResponseStream"]


@dataclass(frozen=True, slots=True)
class Head:
    """A response's status and headers."""

    status: int
    headers: dict[str, str]
    error: Exception | None = None
    """The error in the response."""


class ResponseStream:
    """A response's head and body, written on the background loop and read on another."""

    def __init__(self) -> None:
        self._head: Future[Head] = Future()
        # A caller that stops waiting must not cancel a future that the other side is about to set.
        self._head.set_running_or_notify_cancel()
        self._lock = threading.Lock()
        self._chunks: deque[bytes] = deque()
        self._wake: Callable[[], object] | None = None
        self._end: Exception | None = None
        self._has_ended = False
        self._alive_at: float | None = None  # the request waits for a process, up to the first `alive()`
        self._abandoned = False
        self._on_abandon: Callable[[], object] | None = None

    # On the background loop.

    @property
    def has_head(self) -> bool:
        """True if the status was sent, so that a failure must go into the body."""
        return self._head.done()

    def on_abandon(self, callback: Callable[[], object]) -> None:
        """Call `callback` once on the background loop when the caller abandons the response; at once if it has."""
        self._on_abandon = callback
        if self._abandoned:
            self._tell_abandoned()

    def alive(self) -> None:
        """Record that the request has got a process, or that the API has sent a ping."""
        self._alive_at = time.monotonic()

    def start(self, status: int, headers: dict[str, str], error: Exception | None = None) -> None:
        """Send status and headers."""
        if not self._head.done():
            self._head.set_result(Head(status, headers, error))

    def write(self, chunk: bytes) -> None:
        """Send the next bytes."""
        with self._lock:
            self._chunks.append(chunk)
        self._awake()

    def end(self, error: Exception | None = None) -> None:
        """End the body, or have the reader raise `error` at this point. Only the first end counts."""
        with self._lock:
            if self._has_ended:
                return
            self._end, self._has_ended = error, True
        self._on_abandon = None
        if error is not None and not self._head.done():
            self._head.set_exception(error)
        self._awake()

    def _awake(self) -> None:
        with self._lock:
            wake, self._wake = self._wake, None
        if wake is not None:
            with suppress(RuntimeError):  # the reader's loop has closed: there is no reader left
                wake()

    def _tell_abandoned(self) -> None:
        callback, self._on_abandon = self._on_abandon, None
        if callback is not None:
            callback()

    # On the caller's loop.

    async def head(self, seconds: float | None) -> Head:
        """Wait for status and headers; a caller that stops waiting abandons the response."""
        head = asyncio.wrap_future(self._head)
        try:
            while (timeout := self._remaining(seconds)) is None or timeout > 0:
                if (await asyncio.wait({head}, timeout=timeout))[0]:
                    return head.result()
            raise httpx2.ReadTimeout(f"Claude Code did not answer within {seconds} seconds")
        except BaseException:
            head.cancel()  # so that it warns about no later error
            self.abandon()
            raise

    def _remaining(self, seconds: float | None) -> float | None:
        if seconds is None or (alive_at := self._alive_at) is None:
            return seconds
        return alive_at + seconds - time.monotonic()

    async def read(self, seconds: float | None) -> bytes:
        """Return the received bytes, waiting if necessary; empty at the end."""
        loop = asyncio.get_running_loop()
        while True:
            news = asyncio.Event()
            with self._lock:
                if self._chunks:
                    data = b"".join(self._chunks)
                    self._chunks.clear()
                    return data
                if self._has_ended:
                    if self._end is not None:
                        raise self._end
                    return b""
                self._wake = partial(loop.call_soon_threadsafe, news.set)
            try:
                async with asyncio.timeout(seconds):
                    await news.wait()
            except TimeoutError as error:
                raise httpx2.ReadTimeout(f"Claude Code sent nothing for {seconds} seconds") from error

    def abandon(self) -> None:
        """Mark the response as abandoned. From any thread and from finalizers, any number of times; takes no lock."""
        if self._abandoned or self._has_ended:
            return
        self._abandoned = True
        tell_background(self._abandon)

    async def _abandon(self) -> None:
        self._tell_abandoned()


class Body(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """A response's body as `httpx2` reads it; a synchronous client's thread waits for each piece."""

    def __init__(self, response: ResponseStream, timeout: float | None) -> None:
        self._response = response
        self._timeout = timeout

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self._response.read(self._timeout):
            yield data

    @override
    def __iter__(self) -> Iterator[bytes]:
        while data := run_on_background(self._response.read, self._timeout):
            yield data

    @override
    async def aclose(self) -> None:
        self._response.abandon()

    @override
    def close(self) -> None:
        self._response.abandon()

    def __del__(self) -> None:
        self._response.abandon()
