"""A message sent to the CLI, and the CLI's messages until it has finished it.

Pure bookkeeping on one event loop; reading from the process and interpreting messages happen elsewhere. Received
messages may be read from any thread.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import cast

from claude_agent_sdk import Message, ResultMessage

from ..process.frames import Frame, frame_line
from .spending import Spent

__all__ = ["Exchange"]


class Exchange:
    """A sent user message, with `asks` for an answer of the model, else only for its acknowledgement.

    Each keeps its own messages. So nothing of one turn can be read as part of another, however it ended.
    """

    def __init__(self, frame: Frame, *, asks: bool, is_command: bool = False) -> None:
        """Store the frame to send, and if the CLI may read it as a command.

        Raises:
            TypeError: It is not JSON.
        """
        self.uuid = cast(str, frame["uuid"])
        self.line = frame_line(frame)
        self.asks = asks
        self.is_command = is_command
        self.messages: list[Message] = []
        """Messages received, in order. It only grows."""
        self.result: ResultMessage | None = None
        """Last of the messages, once received."""
        self.has_ended = asyncio.Event()
        """Set when the CLI has finished it, or never will."""
        self.is_read = False
        """True if the result was delivered, so that nothing is left to read."""
        self.is_dropped = False
        """True if the conversation was rewound to before this message, so that its answer needs no reader."""
        self.is_left = False
        """True if its reader has left or was cancelled, so that the CLI must finish it."""
        self.spent = Spent()
        """Its spending; known at its end."""
        self._error: Exception | None = None
        self._news = asyncio.Event()
        self._next = 0

    @property
    def holds_session(self) -> bool:
        """True if no other message may be sent."""
        return self.asks and not self.is_read and not (self.is_over_with and self.has_ended.is_set())

    @property
    def is_over_with(self) -> bool:
        """True if the rest will have no reader."""
        return self.is_read or self.is_dropped or self.is_left

    def begin_with(self, messages: Iterable[Message]) -> None:
        """Add messages received before this one was sent."""
        self.messages.extend(messages)

    def put(self, message: Message, settle: Callable[[], Spent]) -> None:
        """Add a message received while this was the last one sent.

        Args:
            message: The message. If it is the result, this ends.
            settle: Returns the spending until then.
        """
        # In this order: other threads read the messages, and must find all facts about the last one when they see it.
        if isinstance(message, ResultMessage) and self.result is None and self._is_mine(message):
            if self.asks:
                self.spent = settle()
            self.result = message
        if self.asks and not self.is_left:
            self.messages.append(message)
        if self.result is not None:
            self.has_ended.set()
        self._news.set()

    def fail(self, error: Exception) -> None:
        """End the input: the reader raises `error` after the messages received."""
        self.give_up(error)
        self.has_ended.set()

    def give_up(self, error: Exception) -> None:
        """Make the reader raise `error` after the messages received, even if the CLI continues."""
        self._error = self._error or error
        self._news.set()

    async def next(self) -> Message:
        """Return the next message; wait if necessary. For one reader.

        Raises:
            Exception: The error given to `fail()` or `give_up()`.
        """
        await self.wait(self._next)
        message = self.messages[self._next]
        self._next += 1
        self.is_read = message is self.result
        return message

    async def wait(self, seen: int) -> None:
        """Wait until there are more than `seen` messages.

        Raises:
            Exception: The error given to `fail()` or `give_up()`.
        """
        while len(self.messages) <= seen:
            await self._wait_for_news()

    async def wait_for_result(self) -> None:
        """Wait for the result.

        Raises:
            Exception: The error given to `fail()` or `give_up()`.
        """
        while self.result is None:
            await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        if self._error is not None:
            raise self._error
        self._news.clear()
        await self._news.wait()

    def _is_mine(self, result: ResultMessage) -> bool:
        """Return true if a result answers this message, not an earlier one or an action of the CLI itself."""
        named = {result.user_message_uuid, *(result.user_message_uuids or ())} - {None}
        # An old CLI names none.
        return self.uuid in named if named else result.origin is None
