"""User messages of a conversation, as far as a rewind needs them.

A rewind to the first user message empties a conversation. Content before that message would stay, so a reset must know
that there is none. Measured on CLI 2.1.329.
"""

from cc_types import ControlRequestError

__all__ = ["History"]

# A rewind needs only the first message, or a later message if hooks have blocked the first.
_MOST_REMEMBERED = 100


class History:
    """User messages of a conversation, in order, and the content before the first."""

    def __init__(self, *, is_resumed: bool) -> None:
        self.last_sent: str | None = None
        """Last message sent, even if it was dropped since then."""
        self._uuids: list[str] = []
        self.is_resumed = is_resumed
        """True if the conversation was begun in an earlier session."""
        self._before = "messages of an earlier session" if is_resumed else None

    @property
    def first(self) -> str | None:
        """First user message that is still in the conversation."""
        return self._uuids[0] if self._uuids else None

    def add_user(self, uuid: str, *, is_command: bool) -> None:
        """Record a sent message. A command may leave an echo before it."""
        if is_command and not self._uuids:
            self._before = self._before or "the echo of a command"
        if len(self._uuids) < _MOST_REMEMBERED:
            self._uuids.append(uuid)
        self.last_sent = uuid

    def add_assistant(self) -> None:
        """Record a sent assistant message."""
        if not self._uuids:
            self._before = self._before or "an assistant message"

    def clear(self) -> None:
        """Record that a command has cleared the conversation, with an echo at the beginning."""
        self._uuids.clear()
        self._before = "the echo of a command"

    def rewind(self, uuid: str) -> None:
        """Record that a message was dropped, and all after it."""
        if uuid in self._uuids:
            del self._uuids[self._uuids.index(uuid) :]

    def drop_first(self) -> None:
        """Record that the first message never entered the conversation."""
        del self._uuids[0]

    def check_can_be_emptied(self) -> None:
        """Raise if dropping all user messages would leave content."""
        if self._before is not None:
            raise ControlRequestError(
                subtype="rewind_conversation",
                message=f"the conversation begins with {self._before}, which a rewind does not drop",
            )
