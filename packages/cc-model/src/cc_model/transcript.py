"""A request transcript: the CLI messages, for callers that need more than the answer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from inspect import isawaitable
from typing import TypeAlias

from claude_agent_sdk import Message, ResultMessage

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import CLIConnectionError, CLIResponse

MessageCallback: TypeAlias = Callable[[Message], Awaitable[None] | None]
"""Function or coroutine function that is called with a CLI message."""

logger = logging.getLogger(__name__)

# The CLI ends a turn within milliseconds after the answer; the transport ends a turn that hangs before this limit.
_RESULT_SECONDS = 15.0


class Transcript:
    """The CLI messages in order, up to the result. For a repeated request, those from the last attempt.

    `callback` and `queue` get the messages from all attempts; the next call waits for a coroutine.
    """

    def __init__(
        self, callback: MessageCallback | None = None, queue: asyncio.Queue[Message | None] | None = None
    ) -> None:
        self.messages: list[Message] = []
        self._callback = callback
        self._queue = queue
        self._calls: asyncio.Task[None] | None = None
        self._has_result = asyncio.Event()

    def take(self, message: Message) -> None:
        """Add the next message."""
        if self._has_result.is_set():
            self.messages = []
            self._has_result.clear()
        self.messages.append(message)
        if isinstance(message, ResultMessage):
            self._has_result.set()
        if self._queue is not None:
            self._queue.put_nowait(message)
        if self._callback is not None:
            self._call(self._callback, message)

    async def complete(self) -> list[Message]:
        """Wait for the result, which comes a moment after the answer, and for the callback; return all messages.

        Raises:
            CLIConnectionError: The result did not come.
        """
        try:
            async with asyncio.timeout(_RESULT_SECONDS):
                await self._has_result.wait()
        except TimeoutError as error:
            raise CLIConnectionError(reason=f"Claude Code sent no result within {_RESULT_SECONDS:g} seconds") from error
        await self._end_calls()
        return self.messages

    async def complete_if_possible(self) -> None:
        """Wait as `complete()` does, but log a warning if no result comes: the answer is complete without it."""
        try:
            await self.complete()
        except CLIConnectionError as error:
            logger.warning("The callback for messages gets no ResultMessage: %s", error.reason)
            await self._end_calls()

    async def _end_calls(self) -> None:
        if self._calls is not None:
            await asyncio.wait({self._calls})

    def _call(self, callback: MessageCallback, message: Message) -> None:
        try:
            result = callback(message)
        except Exception:
            logger.exception("The callback for messages failed")
            return
        if isawaitable(result):
            self._calls = asyncio.ensure_future(_in_order(self._calls, result))


async def _in_order(previous_call: asyncio.Task[None] | None, call: Awaitable[None]) -> None:
    if previous_call is not None:
        await asyncio.wait({previous_call})
    try:
        await call
    except Exception:
        logger.exception("The callback for messages failed")


def metadata(messages: Iterable[Message], text: str | None) -> CLIResponse:
    """Return the CLI report on an answered request.

    If the answer calls tools that the caller runs, the CLI turn ends there, and the result reports an error. The
    request itself has not failed.
    """
    return convert_sdk_messages_to_cli_response([_answered(message, text) for message in messages])


def _answered(message: Message, text: str | None) -> Message:
    if not isinstance(message, ResultMessage) or not message.is_error:
        return message
    return replace(message, is_error=False, subtype="success", result=text or "", errors=None)
