"""What a caller of a session can do wrong. What can go wrong with a process stands in cc-types."""

from cc_types import ClaudeCodeError

__all__ = ["SessionBusyError", "UnknownToolCallError"]


class SessionBusyError(ClaudeCodeError):
    """A session was given a message while it still answers another one."""

    def __init__(self) -> None:
        super().__init__(
            "This session still answers another message, and it answers one at a time. Read that answer up to its "
            "result, or rewind or close the session; use another session to ask at the same time."
        )


class UnknownToolCallError(ClaudeCodeError, KeyError):
    """No tool call with this id waits for an answer: it was answered already, was cancelled, or never made."""

    call_id: str
    """The id that was given."""

    # `KeyError` would show the sentence in quotes.
    __str__ = Exception.__str__

    def __init__(self, *, call_id: str) -> None:
        self.call_id = call_id
        super().__init__(
            f"No tool call {call_id!r} waits for an answer: it was answered already, was cancelled with its turn, or "
            "never made. Answer each call of `suspended` once."
        )
