"""Which user messages a conversation has, as far as a rewind needs to know it.

A conversation is emptied by rewinding it to its first user message. What stands before that one would stay: so who
empties it must know that there is nothing. Measured on CLI 2.1.329.
"""

from cc_types import ControlRequestError

__all__ = ["History"]

# Of these only the first is needed, or those after it if hooks have kept it out of the conversation.
_MOST_REMEMBERED = 100


class History:
    """The user messages of a conversation, in order, and what stands before the first one."""

    def __init__(self, *, is_resumed: bool) -> None:
        self.last_sent: str | None = None
        """The message that was sent last, also if it was dropped since."""
        self._uuids: list[str] = []
        self.is_resumed = is_resumed
        """Whether the conversation was begun in an earlier session."""
        self._before = "messages of an earlier session" if is_resumed else None

    @property
    def first(self) -> str | None:
        """The first user message that is still in the conversation."""
        return self._uuids[0] if self._uuids else None

    def add_user(self, uuid: str, *, is_command: bool) -> None:
        """Take note of a message that is sent; as a command it may leave an echo in front of itself."""
        if is_command and not self._uuids:
            self._before = self._before or "the echo of a command"
        if len(self._uuids) < _MOST_REMEMBERED:
            self._uuids.append(uuid)
        self.last_sent = uuid

    def add_assistant(self) -> None:
        """Take note of an assistant message that is sent."""
        if not self._uuids:
            self._before = self._before or "an assistant message"

    def clear(self) -> None:
        """Take note that the conversation was cleared by a command, which stands at its beginning now."""
        self._uuids.clear()
        self._before = "the echo of a command"

    def rewind(self, uuid: str) -> None:
        """Take note that a message was dropped, and all after it."""
        if uuid in self._uuids:
            del self._uuids[self._uuids.index(uuid) :]

    def drop_first(self) -> None:
        """Take note that the first message never came into the conversation."""
        del self._uuids[0]

    def check_can_be_emptied(self) -> None:
        """Raise if dropping all user messages would leave something.

        Raises:
            ControlRequestError: It would.
        """
        if self._before is not None:
            raise ControlRequestError(
                subtype="rewind_conversation",
                message=f"the conversation begins with {self._before}, which a rewind leaves where it is",
            )
