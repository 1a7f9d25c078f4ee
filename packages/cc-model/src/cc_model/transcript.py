"""Transcript of a request: the CLI's messages, collected for callers that need more than the answer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from inspect import isawaitable
from typing import TypeAlias

from claude_agent_sdk import Message, ResultMessage

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import CLIConnectionError, CLIResponse

__all__ = ["MessageCallback", "Transcript", "metadata"]

MessageCallback: TypeAlias = Callable[[Message], Awaitable[None] | None]
"""Function or coroutine function that is called with a message of the CLI."""

logger = logging.getLogger(__name__)

# The CLI ends a turn within milliseconds after the answer; the transport ends a turn that hangs before this limit.
_RESULT_SECONDS = 15.0


class Transcript:
    """Messages of the CLI in order, up to the result. For a repeated request, those of the last attempt.

    Args:
        callback: Called with each message of all attempts, in order; the next call waits for a coroutine. Its
            exceptions are logged, and change nothing for the request.
        heard: Queue that gets each message, too.
    """

    def __init__(
        self, callback: MessageCallback | None = None, heard: asyncio.Queue[Message | None] | None = None
    ) -> None:
        self.messages: list[Message] = []
        self._callback = callback
        self._heard = heard
        self._telling: asyncio.Task[None] | None = None
        self._has_result = asyncio.Event()

    def take(self, message: Message) -> None:
        """Add the next message."""
        if self._has_result.is_set():
            self.messages = []
            self._has_result.clear()
        self.messages.append(message)
        if isinstance(message, ResultMessage):
            self._has_result.set()
        if self._heard is not None:
            self._heard.put_nowait(message)
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
        await self._tell_all()
        return self.messages

    async def complete_if_possible(self) -> None:
        """Wait likewise; log a warning if the result does not come, since the answer is complete without it."""
        try:
            await self.complete()
        except CLIConnectionError as error:
            logger.warning("The callback for messages gets no ResultMessage: %s", error.reason)
            await self._tell_all()

    async def _tell_all(self) -> None:
        if self._telling is not None:
            await asyncio.wait({self._telling})

    def _call(self, callback: MessageCallback, message: Message) -> None:
        try:
            told = callback(message)
        except Exception:
            logger.exception("The callback for messages failed")
            return
        if isawaitable(told):
            self._telling = asyncio.ensure_future(_one_by_one(self._telling, told))


async def _one_by_one(before: asyncio.Task[None] | None, told: Awaitable[None]) -> None:
    if before is not None:
        await asyncio.wait({before})
    try:
        await told
    except Exception:
        logger.exception("The callback for messages failed")


def metadata(messages: Iterable[Message], text: str | None) -> CLIResponse:
    """Return the CLI's report of an answered request.

    If the answer calls tools that the caller runs, the CLI's turn ends there, and its result reports an error. The
    request itself is no error.
    """
    return convert_sdk_messages_to_cli_response([_answered(message, text) for message in messages])


def _answered(message: Message, text: str | None) -> Message:
    if not isinstance(message, ResultMessage) or not message.is_error:
        return message
    return replace(message, is_error=False, subtype="success", result=text or "", errors=None)
