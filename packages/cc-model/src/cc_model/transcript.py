"""What the CLI said about a request: collected while it is answered, for those who want more than the answer."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from claude_agent_sdk import Message, ResultMessage

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import CLIConnectionError, CLIResponse

__all__ = ["Listener", "Transcript", "metadata"]

Listener: TypeAlias = Callable[[Message], object]

# The CLI ends a turn within milliseconds of the answer's end; one that hangs is ended by the transport before this.
_RESULT_SECONDS = 15.0


class Transcript:
    """Messages of the CLI in order, up to the result. A request that was repeated has those of the last attempt."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._has_result = asyncio.Event()
        self._has_news = asyncio.Event()

    def take(self, message: Message) -> None:
        """Take the next message."""
        if self._has_result.is_set():
            self.messages = []
            self._has_result.clear()
        self.messages.append(message)
        if isinstance(message, ResultMessage):
            self._has_result.set()
        self._has_news.set()

    async def complete(self) -> list[Message]:
        """Wait for the result, which comes a moment after the answer, and return all messages.

        Raises:
            CLIConnectionError: It did not come.
        """
        try:
            async with asyncio.timeout(_RESULT_SECONDS):
                await self._has_result.wait()
        except TimeoutError as error:
            raise CLIConnectionError(reason=f"Claude Code sent no result within {_RESULT_SECONDS:g} seconds") from error
        return self.messages


def metadata(messages: Iterable[Message], text: str | None) -> CLIResponse:
    """What the CLI tells of a request that was answered.

    When the answer calls tools that the caller runs, the CLI's turn is ended there, which its result calls an error.
    The request is none.
    """
    return convert_sdk_messages_to_cli_response([_answered(message, text) for message in messages])


def _answered(message: Message, text: str | None) -> Message:
    if not isinstance(message, ResultMessage) or not message.is_error:
        return message
    return replace(message, is_error=False, subtype="success", result=text or "", errors=None)
