"""How long a session waits for what, in seconds."""

from dataclasses import dataclass

__all__ = ["Timeouts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The bounds of a session's waits, in seconds. An API call has no bound here: that is its caller's to set."""

    connect: float = 30.0
    """From the spawn to the answer of `initialize`. A busy machine with cold caches takes a few seconds."""
    control: float = 10.0
    """For the answer to one control request, or to a message that asks nothing. Both take milliseconds."""
    close: float = 2.0
    """For the process to end: half of it by itself, the other half after it was told to; then it is killed."""
