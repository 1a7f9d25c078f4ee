"""Handling of a request: through the pool and a process into a response. All on the background loop."""

import asyncio
import json
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import httpx2
from typing_extensions import override

from cc_session import QueueTimeoutError, TurnTimeoutError
from cc_session.internals import Lease, PoolCore, Worker
from cc_types import APIError, ClaudeCodeError, CLIConnectionError, RateLimits
from cc_types.failures import failure_of

from .api.failure import REQUEST_ID, error_body, error_headers, overloaded
from .api.limits import LimitWatch
from .api.message import Answer, sse
from .api.request import MessagesRequest
from .context.request_context import RequestReport
from .process.plan import RequestLaunch
from .process.request_process import RequestProcess
from .response_stream import ResponseStream

__all__ = ["answer"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Some proxies buffer a stream without the second header.
_EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_JSON = {"content-type": "application/json"}
_NO_RETRY = {"x-should-retry": "false"}
# Events with the API's counts.
_COUNTED_EVENTS = frozenset({"message_start", "message_delta"})


class RequestLease(Lease):
    """A lease for a request; the process is ready when it has taken the request."""

    process: RequestProcess

    def __init__(self, launch: RequestLaunch, request: MessagesRequest) -> None:
        super().__init__(launch)
        self._request = request

    @override
    async def prepare(self, worker: Worker) -> None:
        assert isinstance(worker, RequestProcess)  # noqa: S101  # the transport's pool has no others
        self.process = worker
        await worker.take(self.launch, self._request)


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
        _report(lease, process, request, watch, loop)
        try:
            await _while_wanted(response, _answer(core, lease, process, request, response))
        finally:
            if not lease.is_over:  # later, the headers belong to the next request
                headers, may_repeat = {**process.log.headers}, not process.has_run_tools
    except (Exception, asyncio.CancelledError) as error:
        # Before the caller can see it and send its next request.
        core.give_back(lease)
        reason = "The processes were closed while a request was being answered"
        closed = CLIConnectionError(reason=reason, advice="Send it again if its answer is still wanted.")
        _fail(response, closed if core.is_closed else error, headers, may_repeat=may_repeat)
    finally:
        core.give_back(lease)


def _report(
    lease: Lease, process: RequestProcess, request: MessagesRequest, watch: LimitWatch, loop: asyncio.AbstractEventLoop
) -> None:
    """Report the handling to the caller, and limits and the login's end to the transport, as soon as known."""
    report = RequestReport(
        process_started=process.uses == 0 and process.started_at > lease.asked_at,
        wait_seconds=lease.wait_seconds,
        queue_length=lease.queue_length,
        login_expires_at=watch.login_expires_at,
    )
    context = request.context
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


async def _answer(
    core: PoolCore, lease: Lease, process: RequestProcess, request: MessagesRequest, response: ResponseStream
) -> None:
    message, headers, has_begun = Answer(), dict[str, str](), False

    def tell_usage() -> None:
        if request.context is not None:
            request.context.tell_usage(message.billed)

    try:
        async for event in process.answer(message):
            has_begun = True
            if event["type"] in _COUNTED_EVENTS:
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
    """Send an error as the API would: as a status, as an event after the answer's start, or as a connection error.

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
        retry = {} if may_repeat else _NO_RETRY
        response.start(status, {**_JSON, **headers, **retry}, cause)
        response.write(json.dumps(body).encode())
    response.end()
