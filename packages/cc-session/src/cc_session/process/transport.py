"""The transport that all traffic with a CLI passes: control requests, and the record of settings.

The CLI accepts more control requests than the SDK offers: this transport sends them, with special ids, and hides the
answers from the SDK. A request is always sent whole and the answer always awaited, also if the caller was cancelled:
the CLI has the new settings, or will have them. The CLI carries out control requests in order (measured on CLI 2.1.81
to 2.1.332).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, cast
from uuid import uuid4

from claude_agent_sdk import ClaudeAgentOptions, Transport
from typing_extensions import override

from cc_types import ControlRequestError, ControlTimeoutError, JsonValue

from ..background import time_limit
from .observer import Observer
from .settings import Settings

# Sent for every queued message; the SDK does not know this type and would log that each time.
_NOT_FOR_THE_SDK = frozenset({"command_lifecycle"})

# Control requests for the user's answer. The SDK knows none, so it gets them as calls of a hook with this id: it awaits
# the answer, and cancels the call when the CLI does.
_QUESTIONS = frozenset({"elicitation", "request_user_dialog"})
QUESTIONS = "cc_questions"

# A pipe breaks a moment before its reader learns why.
_REASON_SECONDS = 1.0

# Prefixes of lines, which are not parsed: prompts can have megabytes.
_CONTROL_REQUEST, _CONTROL_RESPONSE = '{"type": "control_request"', '{"type": "control_response"'


class ControlTransport(Transport):
    """Wrapper that passes all data to `inner` and adds `request()`. The connection closes `inner`, not the SDK."""

    def __init__(self, inner: Transport, options: ClaudeAgentOptions) -> None:
        self.inner = inner
        self.settings = Settings(options)
        self.observer = Observer()
        self.dialogs: Sequence[str] = ()
        """Kinds of dialogs that the CLI may send; to be set before the start."""
        self._pending: dict[str, asyncio.Future[dict[str, JsonValue]]] = {}
        self._exchanges: set[asyncio.Task[dict[str, JsonValue]]] = set()
        self._has_ended = asyncio.Event()
        self._end: Exception | None = None
        self._blocks = 0

    async def request(self, subtype: str, *, seconds: float, **fields: JsonValue) -> dict[str, JsonValue]:
        """Send a control request and return the answer; raise a refusal, a timeout, or the process end."""
        if self._end is not None:
            raise self._end
        request_id, request = f"cc_{uuid4().hex}", {"subtype": subtype, **fields}
        line = json.dumps({"type": "control_request", "request_id": request_id, "request": request}) + "\n"
        self.settings.sent(request_id, request)
        self.observer.requested(request)
        self._pending[request_id] = asyncio.get_running_loop().create_future()
        exchange = asyncio.ensure_future(self._exchange(request_id, subtype, line, seconds))
        self._exchanges.add(exchange)
        exchange.add_done_callback(self._exchanges.discard)
        exchange.add_done_callback(ignore_outcome)
        return await asyncio.shield(exchange)

    async def wait_for_answers(self) -> None:
        """Wait for the answers to all requests, also from callers that have left, as long as each request may take."""
        while self._exchanges:
            await asyncio.wait(self._exchanges)

    async def _exchange(self, request_id: str, subtype: str, line: str, seconds: float) -> dict[str, JsonValue]:
        answer, is_success = self._pending[request_id], False
        try:
            async with time_limit(seconds, partial(ControlTimeoutError, subtype=subtype, seconds=seconds)):
                await self.write(line)
                response = await answer
            is_success = response.get("subtype") != "error"
        finally:
            self.settings.answered(request_id, is_success=is_success)
            del self._pending[request_id]
            if answer.done():
                ignore_outcome(answer)  # the process may have ended during the write
        if not is_success:
            raise ControlRequestError(subtype=subtype, message=str(response.get("error", "no reason given")))
        payload = response.get("response")
        return cast("dict[str, JsonValue]", payload) if isinstance(payload, dict) else {}

    def end(self, error: Exception) -> None:
        """Make all current and future requests fail with `error`."""
        self._end = self._end or error
        self._has_ended.set()
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(error)

    async def ended(self) -> NoReturn:
        """Wait for the end of the output, and raise the reason."""
        await self._has_ended.wait()
        raise self._end or ConnectionError("Claude Code's output has ended")

    @override
    async def connect(self) -> None:
        await self.inner.connect()

    @override
    async def write(self, data: str) -> None:
        self.observer.sent(data)
        if self.dialogs and data.startswith(_CONTROL_REQUEST):
            initialize, kinds = '"subtype": "initialize"', json.dumps([*self.dialogs])
            data = data.replace(initialize, f'{initialize}, "supportedDialogKinds": {kinds}', 1)
        try:
            await self.inner.write(data)
        except Exception:
            with suppress(TimeoutError):
                async with asyncio.timeout(_REASON_SECONDS):
                    await self._has_ended.wait()
            if self._end is None:
                raise
            # An answer is not needed any more. The SDK sends it in a separate task, whose error nobody reads.
            if not data.startswith(_CONTROL_RESPONSE):
                raise self._end from None

    @override
    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        try:
            async for message in self.inner.read_messages():
                self.observer.received(message)
                for event in self._unreported_events(message):
                    yield {**message, "type": "stream_event", "event": event}
                match message:
                    case {"type": kind} if kind in _NOT_FOR_THE_SDK or self._is_answer(message):
                        pass
                    case {"type": "control_request", "request": {"subtype": kind} as request} if kind in _QUESTIONS:
                        call = {"subtype": "hook_callback", "callback_id": QUESTIONS, "input": request}
                        yield {**message, "request": call}
                    case _:
                        yield message
        except Exception as error:
            # Not for the SDK: it logs an error with the whole text, and replaces it by an earlier turn's error.
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
        pass

    def _unreported_events(self, message: dict[str, Any]) -> Sequence[dict[str, Any]]:
        """Return the stream events for a `fallback` block. The CLI reports only the block, without its trigger."""
        match message:
            case {"parent_tool_use_id": str()}:
                pass  # a sub-agent's
            case {"type": "stream_event", "event": {"type": "message_start"}}:
                self._blocks = 0
            case {"type": "stream_event", "event": {"type": "content_block_start"}}:
                self._blocks += 1
            case {"type": "assistant", "message": {"content": [{"type": "fallback"} as hop]}}:
                place, self._blocks = {"index": self._blocks}, self._blocks + 1
                block = {"trigger": {"type": "refusal"}, **cast("dict[str, Any]", hop)}
                start = {"type": "content_block_start", **place, "content_block": block}
                return [start, {"type": "content_block_stop", **place}]
            case _:
                pass
        return ()

    def _is_answer(self, message: dict[str, Any]) -> bool:
        match message:
            case {"type": "control_response", "response": {"request_id": request_id, **response}}:
                answer = self._pending.get(str(request_id))
                if answer is not None and not answer.done():
                    answer.set_result(response)
                return str(request_id).startswith("cc_")  # also a late answer; others are for the SDK
            case _:
                return message.get("type") == "control_response"  # malformed: the SDK would fail


def ignore_outcome(future: "asyncio.Future[Any]") -> None:
    """Retrieve an error, as asyncio requires, where the caller may have been cancelled."""
    if not future.cancelled():
        future.exception()
