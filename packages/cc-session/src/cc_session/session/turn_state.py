"""The life of a sent message, as a state machine. Pure.

Two sides change the state: the CLI, which ends the message, and its reader in this process, which reads the result,
leaves early, or rewinds the conversation to before the message.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Literal

__all__ = ["SESSION_STATES", "TRANSITIONS", "SessionState", "TurnEvent", "TurnState"]

SessionState = Literal["idle", "busy", "dirty", "dead"]


class TurnState(Enum):
    """State of a message from its creation on."""

    NEW = "new"
    """Not sent yet."""
    RUNNING = "running"
    """Sent; the CLI works on it."""
    DROPPED = "dropped"
    """The conversation was rewound to before it; the CLI has not ended it yet."""
    LEFT = "left"
    """Its reader has left; the CLI has not ended it yet."""
    ENDED = "ended"
    """The CLI has ended it, and its result is unread."""
    OVER = "over"
    """Nothing is left to do for it."""


class TurnEvent(Enum):
    """Cause of a change of state."""

    SEND = "send"
    """It is written to the CLI."""
    END = "end"
    """Its result arrives, or the process ends."""
    READ = "read"
    """Its reader has received the result."""
    LEAVE = "leave"
    """Its reader leaves, or is cancelled."""
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
"""The state of a living session during its last turn. A session whose process has ended is `"dead"`."""
