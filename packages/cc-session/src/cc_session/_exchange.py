"""One message of ours to the CLI, and all that the CLI sends until it is done with it.

Pure bookkeeping on one event loop: who reads from the process, and what the messages mean, is told elsewhere.
"""

import asyncio
from typing import cast

from claude_agent_sdk import Message, ResultMessage

from ._ledger import Spent
from .frames import Frame, frame_line

__all__ = ["Exchange"]


class Exchange:
    """A user message that is sent, with `asks` for an answer of the model's, else only for its acknowledgement.

    Each has a queue of its own. So nothing of one turn can be read as part of another, however it was left.
    """

    def __init__(self, frame: Frame, *, asks: bool) -> None:
        """Take the frame to send.

        Raises:
            TypeError: It is not JSON.
        """
        self.uuid = cast(str, frame["uuid"])
        self.line = frame_line(frame)
        self.asks = asks
        self.has_ended = asyncio.Event()
        """Set when the result has come, or when nothing will come any more."""
        self.is_read = False
        """Whether the result was handed out, so that nothing is left to read."""
        self.is_dropped = False
        """Whether the conversation was rewound to before this message, so that nobody has to read the answer."""
        self.is_left = False
        """Whether its reader has gone, and it is being ended."""
        self.spent = Spent()
        """What it took; known when it has ended."""
        self._messages: asyncio.Queue[Message | Exception] = asyncio.Queue()
        self._result: ResultMessage | None = None

    @property
    def holds_session(self) -> bool:
        """Whether no other message may be sent."""
        return self.asks and not self.is_read and not (self.is_over_with and self.has_ended.is_set())

    @property
    def is_over_with(self) -> bool:
        """Whether nobody will read the rest."""
        return self.is_dropped or self.is_left

    def put(self, message: Message) -> None:
        """Take a message that came while this was the last one sent."""
        if isinstance(message, ResultMessage) and self._result is None and self._is_mine(message):
            self._result = message
            self.has_ended.set()
        if self.asks and not self.is_left:
            self._messages.put_nowait(message)

    def fail(self, error: Exception) -> None:
        """Have the reader raise `error` after the messages that have come."""
        self._messages.put_nowait(error)
        self.has_ended.set()

    async def next(self) -> Message:
        """Return the next message, waiting for it if need be.

        Raises:
            Exception: What `fail()` was given.
        """
        item = await self._messages.get()
        if isinstance(item, Exception):
            self._messages.put_nowait(item)  # for whoever asks next
            raise item
        self.is_read = item is self._result
        return item

    def _is_mine(self, result: ResultMessage) -> bool:
        """A late result of an earlier message names that one. A CLI too old for that names none."""
        named = {result.user_message_uuid, *(result.user_message_uuids or ())} - {None}
        return not named or self.uuid in named
