"""How a turn can fail although its process works."""

from claude_agent_sdk import ResultError

from cc_types import ClaudeCodeError

from .turn import Turn

__all__ = ["TurnError", "turn_error"]


class TurnError(ClaudeCodeError, ResultError):
    """A turn failed. The session can be used afterwards."""

    turn: Turn
    """All that came of it nevertheless."""

    def __init__(self, *, turn: Turn) -> None:
        super().__init__(turn.text or turn.result.subtype)
        self.turn = turn


def turn_error(turn: Turn) -> TurnError | None:
    """The error of a turn, if it failed."""
    return TurnError(turn=turn) if turn.result.is_error else None
