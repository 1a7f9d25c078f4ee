"""The engine: takes a request through the pool, a worker and back into an exchange. All on the background loop."""

import asyncio
import json
import logging
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import httpx2

from cc_types import APIError, ClaudeCodeError

from .answer import Answer, sse
from .exchange import Exchange
from .failure import error_body
from .pool import WorkerPool
from .request import MessagesRequest
from .response import REQUEST_ID, error_headers, new_request_id
from .worker import Worker

__all__ = ["serve"]

T = TypeVar("T")

logger = logging.getLogger(__name__)

_EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}
_JSON = {"content-type": "application/json"}


async def serve(pool: WorkerPool, request: MessagesRequest, exchange: Exchange) -> None:
    """Answer `request` into `exchange`, and leave the worker as clean as it was found. Never raises."""
    try:
        worker = await _while_wanted(exchange, _prepared(pool, request))
    except (Exception, asyncio.CancelledError) as error:
        _tell(exchange, error)
        return
    try:
        await _while_wanted(exchange, _answer(pool, worker, request, exchange))
    except (Exception, asyncio.CancelledError) as error:
        # As after an answer: whoever tries again at once waits for this worker and starts no other.
        pool.settling(worker)
        _tell(exchange, error, worker.log.headers, may_repeat=not worker.has_run_tools)
    finally:
        await _give_back(pool, worker)


async def _while_wanted(exchange: Exchange, work: Coroutine[Any, Any, T]) -> T:
    """Await `work`, which is cancelled when nobody waits for the answer any more."""
    task = asyncio.ensure_future(work)
    exchange.on_abandon(task.cancel)
    return await task


async def _prepared(pool: WorkerPool, request: MessagesRequest) -> Worker:
    """A worker that only lacks the last message. One that fails before it is asked is replaced, once."""
    is_second = False
    while True:
        worker = await pool.acquire(request)
        try:
            await worker.prepare(request)
        except BaseException as error:
            # Half-way between two conversations it is of no use.
            pool.discard(worker)
            if is_second or not isinstance(error, ClaudeCodeError):
                raise
            is_second = True
        else:
            return worker


async def _answer(pool: WorkerPool, worker: Worker, request: MessagesRequest, exchange: Exchange) -> None:
    answer = Answer()
    async for event in worker.answer(request):
        if request.stream:
            if not exchange.has_head:
                exchange.start(200, {**_EVENT_STREAM, **_told_headers(worker)})
            exchange.write(sse(event))
        else:
            answer.feed(event)
    # Before the caller can know that the answer is complete, and come with its next request.
    pool.settling(worker)
    if not request.stream:
        exchange.start(200, {**_JSON, **_told_headers(worker)})
        exchange.write(json.dumps(answer.as_json()).encode())
    exchange.end()


async def _give_back(pool: WorkerPool, worker: Worker) -> None:
    try:
        await worker.settle()
    except Exception:
        logger.exception("Settling %r failed", worker)
        pool.discard(worker)
    except BaseException:
        pool.discard(worker)
        raise
    else:
        pool.release(worker)


def _told_headers(worker: Worker) -> dict[str, str]:
    """What the API's response had in its head, as far as it is known."""
    return {REQUEST_ID: new_request_id(), **worker.log.headers}


def _tell(
    exchange: Exchange, error: BaseException, api_headers: Mapping[str, str] | None = None, *, may_repeat: bool = True
) -> None:
    """Tell of an error as the API would: by a status, by an event once the answer has begun, or by a broken line.

    A request that has run tools must not be repeated, and clients repeat one whose line broke.
    """
    if not may_repeat and not isinstance(error, APIError):
        error = APIError(status=500, message=str(error) or "The request was given up")
    if not isinstance(error, APIError):
        broken = httpx2.ReadError(str(error) or "The request was given up")
        broken.__cause__ = error
        exchange.end(broken)
        return
    headers = {**error_headers(error), **(api_headers or {})}
    body = error_body(error, headers[REQUEST_ID])
    if exchange.has_head:
        exchange.write(sse(body))
    else:
        repeating = {} if may_repeat else {"x-should-retry": "false"}
        exchange.start(error.status or 500, {**_JSON, **headers, **repeating})
        exchange.write(json.dumps(body).encode())
    exchange.end()
