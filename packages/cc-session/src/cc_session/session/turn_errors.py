"""Failures of a turn in a working process, classified by the result and the CLI's messages before it.

The result's `subtype` is not enough: a turn that ended with an API error has the subtype `success`, and a prompt that a
hook blocked is not even an error. Measured on CLI 2.1.329.
"""

from dataclasses import asdict
from typing import TypeAlias, cast

from claude_agent_sdk import AssistantMessage, ResultError, SystemMessage
from typing_extensions import override

from cc_types import ClaudeCodeError
from cc_types.failures import BY_CLI_NAME, BY_KIND, Failure, FailureKind, failure_of, plan_limit_advice

from ..process.cli_file import login_advice
from .turn import Turn

__all__ = ["TurnError", "TurnErrorKind", "turn_error"]

TurnErrorKind: TypeAlias = FailureKind
"""Kind of failure; `"other"` is any kind without a name here."""

# Words with which the CLI reports that the context window has no room for an answer.
_NO_ROOM = "context window limit"


class TurnError(ClaudeCodeError, ResultError):
    """A turn failed. The session can be used afterwards.

    As a `claude_agent_sdk.ResultError` it also has the result's `subtype`, `errors`, `result`, `api_error_status`,
    `terminal_reason` and `session_id`.
    """

    kind: TurnErrorKind
    """Kind of failure."""
    turn: Turn
    """The failed turn: messages, text, usage and cost."""

    def __init__(self, *, kind: TurnErrorKind, turn: Turn) -> None:
        self.kind = kind
        self.turn = turn
        reason = _reason(turn) or kind
        status = f", HTTP status {turn.result.api_error_status}" if turn.result.api_error_status is not None else ""
        sentence = f"The turn failed ({kind}{status}): {reason.rstrip('.')}. {_advice(kind, turn)}"
        # Not `super()`: the SDK's constructor takes the sentence and the facts, ours only the sentence.
        ResultError.__init__(self, sentence, data=asdict(turn.result))

    @property
    def status(self) -> int | None:
        """The HTTP status, if the API answered with an error."""
        return self.turn.result.api_error_status

    @property
    def retryable(self) -> bool:
        """True if the same prompt may succeed later, unchanged."""
        return BY_KIND[self.kind].is_retryable

    @override
    def __repr__(self) -> str:
        return f"TurnError(kind={self.kind!r}, status={self.status}, message={str(self)!r})"


def turn_error(turn: Turn, *, max_cost_usd: float | None = None) -> TurnError | None:
    """Return the error if a turn failed or exceeded the cost limit."""
    if max_cost_usd is not None and turn.cost_usd > max_cost_usd:
        return TurnError(kind="budget", turn=turn)
    kind = _kind(turn)
    return None if kind is None else TurnError(kind=kind, turn=turn)


def _kind(turn: Turn) -> TurnErrorKind | None:
    result = turn.result
    failure = BY_CLI_NAME.get(result.subtype) or BY_CLI_NAME.get(result.terminal_reason or "")
    if failure is not None:
        return failure.kind
    if not result.is_error:
        return _hook_kind(turn)
    if result.stop_reason == "refusal":
        return "refusal"
    if _NO_ROOM in turn.text:
        return "too_long"
    failure = _cli_failure(turn) if result.api_error_status is None else failure_of(result.api_error_status)
    return "other" if failure is None else failure.kind


def _hook_kind(turn: Turn) -> TurnErrorKind | None:
    """Return the kind if a hook stopped the prompt, which the CLI does not count as an error."""
    if turn.result.num_turns > 0:
        return None
    outcomes = [m.data.get("prompt_submit_outcome") for m in turn.messages if isinstance(m, SystemMessage)]
    kinds = [str(cast("dict[str, object]", outcome).get("kind")) for outcome in outcomes if isinstance(outcome, dict)]
    if "blocked_by_hook" in kinds:
        return "prompt_blocked"
    return "hook_stopped" if any("hook" in kind for kind in kinds) else None


def _cli_failure(turn: Turn) -> Failure | None:
    names = [message.error for message in turn.messages if isinstance(message, AssistantMessage) and message.error]
    return BY_CLI_NAME.get(names[-1]) if names else None


def _advice(kind: TurnErrorKind, turn: Turn) -> str:
    if kind == "auth":
        return f"{login_advice()} Or check what the account may do."
    limits = turn.rate_limits if kind == "rate_limit" else None
    if limits is not None and limits.exhausted_until is not None:
        return plan_limit_advice(limits, limits.exhausted_until)
    return BY_KIND[kind].advice


def _reason(turn: Turn) -> str:
    """Return the CLI's explanation. The model's text does not explain a failure."""
    result = turn.result
    if result.is_error and (result.errors or result.result):
        return "; ".join(result.errors or ()) or (result.result or "").strip()
    return (result.result or "").strip() if result.num_turns == 0 else result.terminal_reason or ""
