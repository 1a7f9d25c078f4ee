"""A message sent to the CLI, and the CLI's messages until it has finished the work on it.

Pure bookkeeping on the background loop. Received messages may be read from any thread.
"""

import asyncio
import threading
from collections.abc import Iterable
from typing import cast

from claude_agent_sdk import Message, ResultMessage

from ..process.frames import Frame, frame_line
from .spending import Spent
from .turn_state import TRANSITIONS, TurnEvent, TurnState

__all__ = ["SentMessage"]


class SentMessage:
    """A user message that asks the model, or is only acknowledged by the CLI, and the messages that follow it."""

    def __init__(self, frame: Frame, *, asks: bool, is_command: bool = False) -> None:
        self.uuid = cast(str, frame["uuid"])
        self.line = frame_line(frame)
        self.asks = asks
        self.is_command = is_command
        self.messages: list[Message] = []
        """Messages received, in order. The list only grows."""
        self.result: ResultMessage | None = None
        """The last message, once received."""
        self.has_ended = asyncio.Event()
        """Set at the event `END`."""
        self.state = TurnState.NEW
        """Changed by `enter()`."""
        self.spent = Spent()
        """Spending, complete with the result."""
        self._error: Exception | None = None
        self._news = asyncio.Event()
        self._next = 0
        self._lock = threading.Lock()

    def enter(self, event: TurnEvent) -> None:
        """Change the state. May be called from any thread: a reader may leave while the result arrives."""
        with self._lock:
            self.state = TRANSITIONS.get((self.state, event), self.state)

    @property
    def is_read(self) -> bool:
        """True if the result was delivered."""
        return self._next > 0 and self.messages[self._next - 1] is self.result

    @property
    def waits_for_reader(self) -> bool:
        """True if its reader must read or abandon it before another message may be sent."""
        return self.asks and self.state in (TurnState.RUNNING, TurnState.ENDED)

    def begin_with(self, messages: Iterable[Message]) -> None:
        """Add messages received before this message was sent."""
        self.messages.extend(messages)

    def put(self, message: Message, spent: Spent) -> None:
        """Add a message from the CLI; the result, which reports `spent`, is the last."""
        has_reader = self.asks and self.state is not TurnState.LEFT
        # Before the message is added: other threads that see it must see all facts about it.
        if isinstance(message, ResultMessage) and self.result is None and self._is_mine(message):
            if self.asks:
                self.spent = spent
            self.result = message
            self.enter(TurnEvent.END)
        if has_reader:
            self.messages.append(message)
        if self.result is not None:
            self.has_ended.set()
        self._news.set()

    def fail(self, error: Exception) -> None:
        """End the input: the reader raises `error` after the messages received."""
        self.give_up(error)
        self.enter(TurnEvent.END)
        self.has_ended.set()

    def give_up(self, error: Exception) -> None:
        """Make the reader raise `error` after the messages received, even if the CLI continues."""
        self._error = self._error or error
        self._news.set()

    def has_unread(self) -> bool:
        """Return true if `take()` has a message."""
        return self._next < len(self.messages)

    def take(self) -> Message:
        """Return the next message, which must have been received."""
        message = self.messages[self._next]
        self._next += 1
        if message is self.result:
            self.enter(TurnEvent.READ)
        return message

    def take_all(self) -> None:
        """Skip all messages, once the result has been received."""
        self._next = len(self.messages)
        self.enter(TurnEvent.READ)

    async def wait(self, count: int | None = None) -> None:
        """Wait until there are more than `count` messages, or an unread message if None."""
        while len(self.messages) <= (self._next if count is None else count):
            await self._wait_for_news()

    async def wait_for_result(self) -> None:
        """Wait for the result."""
        while self.result is None:
            await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        if self._error is not None:
            raise self._error
        self._news.clear()
        await self._news.wait()

    def _is_mine(self, result: ResultMessage) -> bool:
        """Return true if a result answers this message, not an earlier message or something that the CLI did itself."""
        uuids = {result.user_message_uuid, *(result.user_message_uuids or ())} - {None}
        # An old CLI sends no uuids.
        return self.uuid in uuids if uuids else result.origin is None
