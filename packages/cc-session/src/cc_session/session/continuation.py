"""Stored conversations that several sessions of this program continue.

Claude Code reads a conversation when it starts, and appends its own turns to it. A session that has not read another's
turns would continue at an older place: whoever resumed the conversation afterwards would get one branch, and lose the
other without a word.
"""

from dataclasses import dataclass
from weakref import WeakValueDictionary

from claude_agent_sdk import ClaudeAgentOptions

from ..errors import CLIConnectionError

# Equal to no number of changes, and even: a message is being answered while the CLI reads the conversation.
_INCOMPLETE = -2

_stored: "WeakValueDictionary[str, _Stored]" = WeakValueDictionary()


@dataclass(slots=True, weakref_slot=True, eq=False)
class _Stored:
    """A conversation while a session of this program has it."""

    session_id: str
    changes: int = 0
    """Beginnings and ends of messages so far; odd while one is being answered."""


class Continuation:
    """A session's view of its stored conversation, from its start on."""

    def __init__(self, options: ClaudeAgentOptions) -> None:
        self._stored = _of(options.resume) if options.resume and not options.fork_session else None
        self._seen = _INCOMPLETE
        if self._stored is not None and self._stored.changes % 2 == 0:
            self._seen = self._stored.changes

    def begin(self) -> None:
        """Record that a message begins; raise if another session has continued the conversation."""
        self.end()
        if (stored := self._stored) is None:
            return
        if stored.changes != self._seen:
            raise CLIConnectionError(
                reason=f"Another session of this program has continued the conversation {stored.session_id}, and this "
                "session does not have its messages",
                advice="Resume the conversation again, with fork_session=True if both are to go on.",
            )
        stored.changes = self._seen = stored.changes + 1

    def end(self, session_id: str | None = None) -> None:
        """Record that the message is answered, or that the process has ended; `session_id` is the CLI id."""
        if self._stored is not None and self._seen % 2:
            self._stored.changes += 1
            self._seen = self._stored.changes
        if session_id is not None and (self._stored is None or self._stored.session_id != session_id):
            self._stored = _of(session_id)
            self._seen = self._stored.changes


def _of(session_id: str) -> _Stored:
    return _stored.setdefault(session_id, _Stored(session_id))
