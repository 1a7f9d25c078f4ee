"""Handling of a request: through the pool and a process into a response.

It runs on the background loop, the caller on any loop. Between them are a future for the response head and a buffer
for its body: the background side never waits for the caller, and the caller never touches the background side. A
response may be opened, read and closed in different tasks. A caller that needs no more calls `abandon()`, which only
sets a flag.
"""

import asyncio
import json
import logging
import math
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import httpx2
from typing_extensions import override

from cc_session import QueueTimeoutError, TurnTimeoutError
from cc_session.internals import Lease, PoolCore, Worker, run_on_background, tell_background
from cc_types import APIError, ClaudeCodeError, CLIConnectionError, RateLimits
from cc_types.failures import failure_of

from .api.request import MessagesRequest
from .api.response import REQUEST_ID, Answer, error_body, error_headers, overloaded, sse
from .context import RequestReport
from .limit_watch import LimitWatch
from .process.plan import RequestLaunch
from .process.request_process import RequestProcess

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Some proxies buffer a stream without the second header.
_EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Head:
    """A response's status and headers."""

    status: int
    headers: dict[str, str]
    error: Exception | None = None


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
        self.waited_at: Callable[[], float] = lambda: -math.inf
        """Returns the time when Claude Code last waited for a tool, a hook or a person, for which no timeout runs."""
        self._abandoned = False
        self._on_abandon: Callable[[], object] | None = None

    # On the background loop.

    @property
    def has_head(self) -> bool:
        """True if the status was sent, so that a failure must go into the body."""
        return self._head.done()

    def on_abandon(self, callback: Callable[[], object]) -> None:
        """Call `callback` once on the background loop when the caller abandons the response; at once if it has."""
        if self._abandoned:
            callback()
        else:
            self._on_abandon = callback

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
            with suppress(RuntimeError):  # the reader loop has closed
                wake()

    async def _tell_abandoned(self) -> None:
        callback, self._on_abandon = self._on_abandon, None
        if callback is not None:
            callback()

    # On the caller's loop.

    async def head(self, seconds: float | None) -> Head:
        """Wait for status and headers; a caller that stops waiting abandons the response."""
        head = asyncio.wrap_future(self._head)
        try:
            while (timeout := self._remaining(seconds, self._alive_at)) is None or timeout > 0:
                if (await asyncio.wait({head}, timeout=timeout))[0]:
                    return head.result()
            raise httpx2.ReadTimeout(f"Claude Code did not answer within {seconds} seconds")
        except BaseException:
            head.cancel()  # so that it warns about no later error
            self.abandon()
            raise

    def _remaining(self, seconds: float | None, since: float | None) -> float | None:
        """Return the rest of a timeout that runs since a time; all of it while the request waits for a process."""
        if seconds is None or since is None:
            return seconds
        return max(since, self.waited_at()) + seconds - time.monotonic()

    async def read(self, seconds: float | None) -> bytes:
        """Return the received bytes, waiting if necessary; empty at the end."""
        loop, began = asyncio.get_running_loop(), time.monotonic()
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
            if (timeout := self._remaining(seconds, began)) is not None and timeout <= 0:
                raise httpx2.ReadTimeout(f"Claude Code sent nothing for {seconds} seconds")
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await news.wait()

    def abandon(self) -> None:
        """Mark the response as abandoned. From any thread and from finalizers, any number of times; takes no lock."""
        if self._abandoned or self._has_ended:
            return
        self._abandoned = True
        tell_background(self._tell_abandoned)


class Body(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """A response body as `httpx2` reads it; a synchronous client's thread waits for each piece.

    Up to its end it keeps its transport, whose processes would end with it.
    """

    def __init__(self, response: ResponseStream, timeout: float | None, transport: object) -> None:
        self._response = response
        self._timeout = timeout
        self._transport: object = transport

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
        self.close()

    @override
    def close(self) -> None:
        self._response.abandon()
        self._transport = None

    def __del__(self) -> None:
        self._response.abandon()


class RequestLease(Lease):
    """A lease for a request; the process is ready when it has taken the request."""

    process: RequestProcess
    process_started: bool
    """True if the process was started for this lease."""

    def __init__(self, launch: RequestLaunch, request: MessagesRequest) -> None:
        super().__init__(launch)
        self.request = request

    @override
    async def prepare(self, worker: Worker) -> None:
        process = worker.adapter
        assert isinstance(process, RequestProcess)  # noqa: S101  # the transport pool has no others
        is_first = worker.uses == 0
        self.process, self.process_started = process, is_first and worker.started_at > self.asked_at
        await process.take(self.launch, self.request, is_first=is_first)


async def answer(
    core: PoolCore, launch: RequestLaunch, request: MessagesRequest, response: ResponseStream, watch: LimitWatch,
    loop: asyncio.AbstractEventLoop,
) -> None:  # fmt: skip
    """Answer `request` from `loop` into `response`, with a process from `core`; `watch` gets limits. Never raises."""
    lease = RequestLease(launch, request)
    headers: Mapping[str, str] = {}
    may_repeat = True
    try:
        await _while_wanted(response, core.acquire(lease))
        process = lease.process
        response.alive()
        response.waited_at = process.session.waited_at
        _report(lease, watch, loop)
        try:
            await _while_wanted(response, _answer(core, lease, response))
        finally:
            if not lease.is_over:  # later, the headers belong to the next request
                headers, may_repeat = {**process.log.headers}, not process.reading.has_run_tools
    except (Exception, asyncio.CancelledError) as error:
        # Before the caller can see it and send its next request.
        core.give_back(lease)
        reason = "The processes were closed while a request was being answered"
        closed = CLIConnectionError(reason=reason, advice="Send it again if its answer is still wanted.")
        _fail(response, closed if core.is_closed else error, headers, may_repeat=may_repeat)
    finally:
        core.give_back(lease)


def _report(lease: RequestLease, watch: LimitWatch, loop: asyncio.AbstractEventLoop) -> None:
    """Report the handling to the caller, and limits and the end of the login to the transport, as soon as known."""
    process, context = lease.process, lease.request.context
    report = RequestReport(
        process_started=lease.process_started,
        wait_seconds=lease.wait_seconds,
        queue_length=lease.queue_length,
        login_expires_at=watch.login_expires_at,
    )
    if context is not None:
        context.report = report

    def note_limits(limits: RateLimits) -> None:
        if context is not None:
            context.report = replace(report, rate_limits=limits)
        watch.note(limits, loop)

    process.on_limits, process.on_login = note_limits, watch.note_login


async def _while_wanted(response: ResponseStream, work: Coroutine[Any, Any, T]) -> T:
    """Await `work`; cancel it when the caller abandons the response."""
    task = asyncio.ensure_future(work)
    response.on_abandon(task.cancel)
    return await task


async def _answer(core: PoolCore, lease: RequestLease, response: ResponseStream) -> None:
    process, request = lease.process, lease.request
    message, headers, has_begun = Answer(), dict[str, str](), False

    def tell_usage() -> None:
        if request.context is not None:
            request.context.tell_usage(message.billed)

    try:
        async for event in process.answer(message):
            has_begun = True
            if event["type"] in ("message_start", "message_delta"):  # with the API counts
                tell_usage()
            if event["type"] == "ping":
                response.alive()
            if event["type"] == "message_stop":
                # Before the caller can see that the answer is complete, and send its next request.
                headers = {**process.log.headers}
                core.give_back(lease)
            if request.stream:
                if not response.has_head:
                    response.start(200, {**_EVENT_STREAM, **process.log.headers})
                response.write(sse(event))
    finally:
        if has_begun and message.stop_reason is None:  # the API has not counted the output
            tell_usage()
    if not request.stream:
        response.start(200, {**_JSON, **headers})
        response.write(json.dumps(message.as_json()).encode())
    response.end()


def _fail(response: ResponseStream, error: BaseException, api_headers: Mapping[str, str], *, may_repeat: bool) -> None:
    """Send an error as the API would: as a status, as an event after the answer has begun, or as a connection error.

    A request that has run tools, or has had its time, must not be retried, and clients retry after a connection error.
    The same holds for an error that its status calls temporary although it is not, such as a used-up plan window.
    """
    if not isinstance(error, ClaudeCodeError | asyncio.CancelledError):
        logger.error("A request failed by an unexpected error", exc_info=error)
    cause = error if isinstance(error, ClaudeCodeError) else None
    if isinstance(error, TurnTimeoutError):
        error, may_repeat = APIError(status=504, error_type="timeout_error", message=str(error)), False
    elif isinstance(error, QueueTimeoutError):
        error = overloaded(error)
    if not may_repeat and not isinstance(error, APIError):
        error = APIError(status=500, message=str(error) or "The request was given up")
    if not isinstance(error, APIError):
        broken = httpx2.ReadError(str(error) or "The request was given up")
        broken.__cause__ = error
        response.end(broken)
        return
    status = error.status or 500
    # Clients repeat a request after these statuses, unless a header forbids it.
    may_repeat = may_repeat and (error.retryable or not failure_of(status).is_retryable)
    headers = {**error_headers(error), **api_headers}
    if error.request_id is not None:  # the CLI may have asked again since
        headers[REQUEST_ID] = error.request_id
    body = error_body(error, headers.get(REQUEST_ID))
    if response.has_head:
        response.write(sse(body))
    else:
        retry = {} if may_repeat else {"x-should-retry": "false"}
        response.start(status, {**_JSON, **headers, **retry}, cause)
        response.write(json.dumps(body).encode())
    response.end()
