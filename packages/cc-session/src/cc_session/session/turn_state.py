"""States of a sent message, as a table.

Two sides change the state: the CLI, which ends the message, and the reader in this process, which reads the result,
leaves early, or rewinds the conversation to before the message.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Literal

__all__ = ["SESSION_STATES", "TRANSITIONS", "SessionState", "TurnEvent", "TurnState"]

SessionState = Literal["idle", "busy", "dirty", "dead"]


class TurnState(Enum):
    """State of a message, from creation on."""

    NEW = "new"
    """Not sent yet."""
    RUNNING = "running"
    """Sent; the CLI works on it."""
    DROPPED = "dropped"
    """The conversation was rewound to before it; the CLI has not ended it yet."""
    LEFT = "left"
    """The reader has left; the CLI has not ended it yet."""
    ENDED = "ended"
    """The CLI has ended it, and the result is unread."""
    OVER = "over"
    """Nothing more has to be done for it."""


class TurnEvent(Enum):
    """Cause of a change of state."""

    SEND = "send"
    """It is written to the CLI."""
    END = "end"
    """The result arrives, or the process ends."""
    READ = "read"
    """The reader has received the result."""
    LEAVE = "leave"
    """The reader leaves, or is cancelled."""
    DROP = "drop"
    """The conversation is rewound to before it."""


TRANSITIONS: Mapping[tuple[TurnState, TurnEvent], TurnState] = {
    (TurnState.NEW, TurnEvent.SEND): TurnState.RUNNING,
    (TurnState.NEW, TurnEvent.LEAVE): TurnState.OVER,
    (TurnState.RUNNING, TurnEvent.END): TurnState.ENDED,
    (TurnState.RUNNING, TurnEvent.LEAVE): TurnState.LEFT,
    (TurnState.RUNNING, TurnEvent.DROP): TurnState.DROPPED,
    (TurnState.DROPPED, TurnEvent.END): TurnState.OVER,
    (TurnState.DROPPED, TurnEvent.LEAVE): TurnState.LEFT,
    (TurnState.LEFT, TurnEvent.END): TurnState.OVER,
    (TurnState.ENDED, TurnEvent.READ): TurnState.OVER,
    (TurnState.ENDED, TurnEvent.LEAVE): TurnState.OVER,
    (TurnState.ENDED, TurnEvent.DROP): TurnState.OVER,
}
"""The next state for a state and an event. All other events leave the state as it is."""

SESSION_STATES: Mapping[TurnState, SessionState] = {
    TurnState.NEW: "idle",
    TurnState.RUNNING: "busy",
    TurnState.DROPPED: "busy",
    TurnState.LEFT: "dirty",
    TurnState.ENDED: "busy",
    TurnState.OVER: "idle",
}
"""State of a living session during its last turn. A session whose process has ended is `"dead"`."""
