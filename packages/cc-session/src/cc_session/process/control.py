"""Control requests that the SDK has no method for, over any SDK transport.

The CLI accepts more control requests than the SDK offers. A transport sees all messages, so this one sends its own
requests, with its own ids, and hides their answers from the SDK. A request is always sent whole and its answer always
awaited, also if its caller was cancelled: so the record of the settings is right.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, NoReturn, cast
from uuid import uuid4

from claude_agent_sdk import ClaudeAgentOptions, Transport
from typing_extensions import override

from cc_types import ControlRequestError, ControlTimeoutError, JsonValue

from .observer import Observer, is_response
from .settings import Settings

__all__ = ["ControlTransport"]

logger = logging.getLogger(__name__)

# Sent for every queued message; the SDK does not know it and would report that each time.
_NOT_FOR_THE_SDK = frozenset({"command_lifecycle"})

# A pipe breaks a moment before its reader learns why.
_REASON_SECONDS = 1.0


class ControlTransport(Transport):
    """Wrapper that passes all data to `inner` and adds `request()`."""

    def __init__(self, inner: Transport, options: ClaudeAgentOptions, *, close_seconds: float) -> None:
        self.inner = inner
        self.settings = Settings(options)
        self.observer = Observer()
        self._close_seconds = close_seconds
        self._closing: asyncio.Future[None] | None = None
        self._pending: dict[str, asyncio.Future[dict[str, JsonValue]]] = {}
        self._exchanges: set[asyncio.Task[dict[str, JsonValue]]] = set()
        self._has_ended = asyncio.Event()
        self._end: Exception | None = None

    async def request(self, subtype: str, *, seconds: float, **fields: JsonValue) -> dict[str, JsonValue]:
        """Send a control request and return its answer.

        Raises:
            ControlTimeoutError: There was no answer within `seconds` seconds.
            ControlRequestError: The CLI refused.
            ClaudeCodeError: The process ended before it answered; the error is that of the process.
        """
        if self._end is not None:
            raise self._end
        request_id, request = f"cc_{uuid4().hex}", {"subtype": subtype, **fields}
        line = json.dumps({"type": "control_request", "request_id": request_id, "request": request}) + "\n"
        self.settings.sent(request_id, request)
        self.observer.requested(request)
        self._pending[request_id] = asyncio.get_running_loop().create_future()
        exchange = asyncio.ensure_future(self._exchange(request_id, subtype, line, seconds))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._has_finished)
        return await asyncio.shield(exchange)

    async def settled(self) -> None:
        """Wait for the answers to all requests, also of callers that have left. Bounded by the requests' own limits."""
        while self._exchanges:
            await asyncio.wait(self._exchanges)

    async def _exchange(self, request_id: str, subtype: str, line: str, seconds: float) -> dict[str, JsonValue]:
        answer, is_success = self._pending[request_id], False
        try:
            async with asyncio.timeout(seconds):
                await self.write(line)
                response = await answer
            is_success = response.get("subtype") != "error"
        except TimeoutError as error:
            raise ControlTimeoutError(subtype=subtype, seconds=seconds) from error
        finally:
            self.settings.answered(request_id, is_success=is_success)
            del self._pending[request_id]
            if answer.done() and not answer.cancelled():
                answer.exception()  # mark as retrieved, also if the process ended during the write
        if not is_success:
            raise ControlRequestError(subtype=subtype, message=str(response.get("error", "no reason given")))
        payload = response.get("response")
        return cast("dict[str, JsonValue]", payload) if isinstance(payload, dict) else {}

    def _has_finished(self, exchange: "asyncio.Task[dict[str, JsonValue]]") -> None:
        self._exchanges.discard(exchange)
        if not exchange.cancelled():
            exchange.exception()  # mark as retrieved: its caller may have left

    def end(self, error: Exception) -> None:
        """Make all current and future requests fail with `error`."""
        if self._end is None:
            self._end = error
        self._has_ended.set()
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(error)

    async def ended(self) -> NoReturn:
        """Wait for the end of the output, and raise its reason."""
        await self._has_ended.wait()
        raise self._end or ConnectionError("Claude Code's output has ended")

    @override
    async def connect(self) -> None:
        await self.inner.connect()

    @override
    async def write(self, data: str) -> None:
        self.observer.sent(data)
        try:
            await self.inner.write(data)
        except Exception:
            with suppress(TimeoutError):
                async with asyncio.timeout(_REASON_SECONDS):
                    await self._has_ended.wait()
            if self._end is None:
                raise
            # Our answer is not needed any more. The SDK sends it in a separate task, whose error is never read.
            if not is_response(data):
                raise self._end from None

    @override
    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        try:
            async for message in self.inner.read_messages():
                self.observer.received(message)
                if message.get("type") not in _NOT_FOR_THE_SDK and not self._is_answer(message):
                    yield message
        except Exception as error:
            # Not for the SDK: it logs an error with the whole text, and replaces it by the error of an earlier turn.
            self.end(error)
        self.end(ConnectionError("Claude Code's output has ended"))

    @override
    async def end_input(self) -> None:
        await self.inner.end_input()

    @override
    def is_ready(self) -> bool:
        return self.inner.is_ready()

    @override
    async def close(self) -> None:
        # Only once: the SDK closes it when connecting fails, and we close it in any case.
        if self._closing is None:
            self._closing = asyncio.ensure_future(self.inner.close())
            self._closing.add_done_callback(_report)
        if not (await asyncio.wait({self._closing}, timeout=self._close_seconds))[0]:
            logger.error("%r was not closed within %g seconds and is left alone", self.inner, self._close_seconds)
            self._closing.cancel()

    def _is_answer(self, message: dict[str, Any]) -> bool:
        if message.get("type") != "control_response":
            return False
        response = cast("dict[str, JsonValue] | None", message.get("response"))
        if not isinstance(response, dict):
            return True  # to no request, and the SDK would fail with it
        answer = self._pending.get(str(response.get("request_id")))
        if answer is None:
            # Ours, but no longer waited for, or the SDK's.
            return str(response.get("request_id")).startswith("cc_")
        if not answer.done():
            answer.set_result(response)
        return True


def _report(closing: "asyncio.Future[None]") -> None:
    if not closing.cancelled() and (error := closing.exception()) is not None:
        logger.error("Closing the transport of a Claude Code session failed", exc_info=error)
