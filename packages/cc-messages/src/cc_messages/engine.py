"""The engine: takes a request through the pool, a worker and back into an exchange. All on the background loop."""

import asyncio
import json

import httpx2

from cc_types import APIError, ClaudeCodeError

from .answer import Answer, sse
from .exchange import Exchange
from .failure import error_body
from .pool import WorkerPool
from .request import MessagesRequest
from .worker import Worker

__all__ = ["serve"]


async def serve(pool: WorkerPool, request: MessagesRequest, exchange: Exchange) -> None:
    """Answer `request` into `exchange`, and leave the worker as clean as it was found. Never raises."""
    try:
        worker = await _prepared(pool, request, exchange)
    except asyncio.CancelledError:
        return
    except Exception as error:
        _fail(exchange, error)
        return
    # Runs beside the reading of the turn, which the interrupt is to end.
    interrupting: list[asyncio.Future[None]] = []
    exchange.on_abandon(lambda: interrupting.append(asyncio.ensure_future(worker.interrupt())))
    try:
        await _answer(pool, worker, request, exchange)
    finally:
        await worker.settle()
        for task in interrupting:
            task.cancel()
        pool.release(worker)


async def _prepared(pool: WorkerPool, request: MessagesRequest, exchange: Exchange) -> Worker:
    """A worker that only lacks the last message. One that fails before it is asked is replaced, once."""
    acquiring = asyncio.ensure_future(_acquire_and_prepare(pool, request))
    exchange.on_abandon(acquiring.cancel)
    try:
        return await acquiring
    except APIError:
        raise
    except ClaudeCodeError:
        acquiring = asyncio.ensure_future(_acquire_and_prepare(pool, request))
        exchange.on_abandon(acquiring.cancel)
        return await acquiring


async def _acquire_and_prepare(pool: WorkerPool, request: MessagesRequest) -> Worker:
    worker = await pool.acquire(request)
    try:
        await worker.prepare(request)
    except BaseException:
        # Half-way between two conversations it is of no use.
        await asyncio.shield(worker.close())
        pool.release(worker)
        raise
    return worker


async def _answer(pool: WorkerPool, worker: Worker, request: MessagesRequest, exchange: Exchange) -> None:
    answer = Answer()
    try:
        async for event in worker.answer(request):
            answer.feed(event)
            if request.stream:
                exchange.start(200, {"content-type": "text/event-stream; charset=utf-8"})
                exchange.write(sse(event))
    except Exception as error:
        _fail(exchange, error)
    else:
        pool.settling(worker)
        if not request.stream:
            exchange.start(200, {"content-type": "application/json"})
            exchange.write(json.dumps(answer.as_json()).encode())
        exchange.end()


def _fail(exchange: Exchange, error: Exception) -> None:
    """Tell the caller as the API would: by a status, by an event once the answer has begun, or by a broken line."""
    if not isinstance(error, APIError):
        exchange.end(_broken(error))
        return
    body = error_body(error)
    if exchange.has_head:
        exchange.write(sse(body))
    else:
        exchange.start(error.status or 500, {"content-type": "application/json"})
        exchange.write(json.dumps(body).encode())
    exchange.end()


def _broken(error: Exception) -> Exception:
    broken = httpx2.ReadError(str(error))
    broken.__cause__ = error
    return broken
