"""One message of ours to the CLI, and all that the CLI sends until it is done with it.

Pure bookkeeping on one event loop: who reads from the process, and what the messages mean, is told elsewhere. What has
come may be looked at from any thread.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import cast

from claude_agent_sdk import Message, ResultMessage

from ..process.frames import Frame, frame_line
from .spending import Spent

__all__ = ["Exchange"]


class Exchange:
    """A user message that is sent, with `asks` for an answer of the model's, else only for its acknowledgement.

    Each keeps its own messages. So nothing of one turn can be read as part of another, however it was left.
    """

    def __init__(self, frame: Frame, *, asks: bool, is_command: bool = False) -> None:
        """Take the frame to send, and whether the CLI may take it as a command.

        Raises:
            TypeError: It is not JSON.
        """
        self.uuid = cast(str, frame["uuid"])
        self.line = frame_line(frame)
        self.asks = asks
        self.is_command = is_command
        self.messages: list[Message] = []
        """What has come, in order. It only grows."""
        self.result: ResultMessage | None = None
        """The last of the messages, when it has come."""
        self.has_ended = asyncio.Event()
        """Set when the CLI is done with it, or will never be."""
        self.is_read = False
        """Whether the result was handed out, so that nothing is left to read."""
        self.is_dropped = False
        """Whether the conversation was rewound to before this message, so that nobody has to read the answer."""
        self.is_left = False
        """Whether its reader has gone or was sent away, so that the CLI has to be done with it."""
        self.spent = Spent()
        """What it took; known when it has ended."""
        self._error: Exception | None = None
        self._news = asyncio.Event()
        self._next = 0

    @property
    def holds_session(self) -> bool:
        """Whether no other message may be sent."""
        return self.asks and not self.is_read and not (self.is_over_with and self.has_ended.is_set())

    @property
    def is_over_with(self) -> bool:
        """Whether nobody will read the rest."""
        return self.is_read or self.is_dropped or self.is_left

    def begin_with(self, messages: Iterable[Message]) -> None:
        """Take messages that came before this one was sent."""
        self.messages.extend(messages)

    def put(self, message: Message, settle: Callable[[], Spent]) -> None:
        """Take a message that came while this was the last one sent.

        Args:
            message: The message. If it is the result, this ends.
            settle: Tells what was spent until then.
        """
        # In this order: other threads look at the messages, and must know all about the last one when they see it.
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
        """Nothing will come any more: have the reader raise `error` after the messages that have come."""
        self.give_up(error)
        self.has_ended.set()

    def give_up(self, error: Exception) -> None:
        """Have the reader raise `error` after the messages that have come, whatever the CLI still does."""
        self._error = self._error or error
        self._news.set()

    async def next(self) -> Message:
        """Return the next message, waiting for it if need be. For one reader.

        Raises:
            Exception: What `fail()` or `give_up()` was given.
        """
        await self.wait(self._next)
        message = self.messages[self._next]
        self._next += 1
        self.is_read = message is self.result
        return message

    async def wait(self, seen: int) -> None:
        """Wait until there are more than `seen` messages.

        Raises:
            Exception: What `fail()` or `give_up()` was given.
        """
        while len(self.messages) <= seen:
            await self._wait_for_news()

    async def wait_for_result(self) -> None:
        """Wait until the result is there.

        Raises:
            Exception: What `fail()` or `give_up()` was given.
        """
        while self.result is None:
            await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        if self._error is not None:
            raise self._error
        self._news.clear()
        await self._news.wait()

    def _is_mine(self, result: ResultMessage) -> bool:
        """Whether a result answers this message, and not an earlier one, or something that the CLI did by itself."""
        named = {result.user_message_uuid, *(result.user_message_uuids or ())} - {None}
        # A CLI that is too old names none.
        return self.uuid in named if named else result.origin is None
