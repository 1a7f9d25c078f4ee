"""Failures of a turn in a working process, classified by the result and the CLI's messages before it.

The result's `subtype` is not enough: a turn that ended with an API error has the subtype `success`, and a prompt that a
hook blocked is not even an error. Measured on CLI 2.1.329.
"""

from dataclasses import asdict
from typing import Literal, TypeAlias, cast

from claude_agent_sdk import AssistantMessage, ResultError, SystemMessage
from typing_extensions import override

from cc_types import ClaudeCodeError

from ..process.cli_file import login_advice
from .turn import Turn

__all__ = ["TurnError", "TurnErrorKind", "turn_error"]

TurnErrorKind: TypeAlias = Literal[
    "auth", "budget", "hook_stopped", "interrupted", "invalid_request", "max_tokens", "max_turns", "other",
    "overloaded", "prompt_blocked", "rate_limit", "refusal", "server", "too_long",
]  # fmt: skip
"""Kind of failure; `"other"` is any kind without a name here."""

_RETRYABLE = frozenset({"overloaded", "rate_limit", "server"})

_BY_SUBTYPE: dict[str, TurnErrorKind] = {"error_max_turns": "max_turns", "error_max_budget_usd": "budget"}

_BY_TERMINAL_REASON: dict[str, TurnErrorKind] = {
    "aborted_streaming": "interrupted",
    "aborted_tools": "interrupted",
    "budget_exhausted": "budget",
    "hook_stopped": "hook_stopped",
    "image_error": "too_long",
    "max_turns": "max_turns",
    "prompt_too_long": "too_long",
}

_BY_STATUS: dict[int, TurnErrorKind] = {
    401: "auth", 402: "auth", 403: "auth", 408: "server", 413: "too_long", 429: "rate_limit", 529: "overloaded",
}  # fmt: skip

# By the CLI's name in the message that it wrote itself, in place of an answer.
_BY_CLI: dict[str, TurnErrorKind] = {
    "authentication_failed": "auth",
    "billing_error": "auth",
    "invalid_request": "invalid_request",
    "max_output_tokens": "max_tokens",
    "model_not_found": "invalid_request",
    "oauth_org_not_allowed": "auth",
    "overloaded": "overloaded",
    "rate_limit": "rate_limit",
    "server_error": "server",
}

# Words with which the CLI reports that the context window has no room for an answer.
_NO_ROOM = "context window limit"

_ADVICE: dict[TurnErrorKind, str] = {
    "budget": "Allow more with `max_cost_usd`; the messages until then are in `turn`.",
    "hook_stopped": "A hook of this session has ended the turn.",
    "interrupted": "The messages until then are in `turn`.",
    "invalid_request": "Change the request before sending it again.",
    "max_tokens": "Ask for less at once, or allow more tokens.",
    "max_turns": "Allow more with the option `max_turns`; the messages until then are in `turn`.",
    "other": "All messages are in `turn`.",
    "overloaded": "Try again later.",
    "prompt_blocked": "A hook of this session did not let the prompt pass.",
    "rate_limit": "Wait, then try again with fewer requests at a time.",
    "refusal": "The model refuses to answer; ask something else in a new conversation.",
    "server": "Try again later.",
    "too_long": "Send less, or begin a new conversation.",
}


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
        return self.kind in _RETRYABLE

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
    kind = _BY_SUBTYPE.get(result.subtype) or _BY_TERMINAL_REASON.get(result.terminal_reason or "")
    if kind is not None:
        return kind
    if not result.is_error:
        return _hook_kind(turn)
    if result.stop_reason == "refusal":
        return "refusal"
    if _NO_ROOM in turn.text:
        return "too_long"
    if (status := result.api_error_status) is not None:
        return _BY_STATUS.get(status, "server" if status >= 500 else "invalid_request")
    errors = [message.error for message in turn.messages if isinstance(message, AssistantMessage) and message.error]
    return _BY_CLI.get(errors[-1], "other") if errors else "other"


def _hook_kind(turn: Turn) -> TurnErrorKind | None:
    """Return the kind if a hook stopped the prompt, which the CLI does not count as an error."""
    if turn.result.num_turns > 0:
        return None
    outcomes = [m.data.get("prompt_submit_outcome") for m in turn.messages if isinstance(m, SystemMessage)]
    kinds = [str(cast("dict[str, object]", outcome).get("kind")) for outcome in outcomes if isinstance(outcome, dict)]
    if "blocked_by_hook" in kinds:
        return "prompt_blocked"
    return "hook_stopped" if any("hook" in kind for kind in kinds) else None


def _advice(kind: TurnErrorKind, turn: Turn) -> str:
    if kind == "auth":
        return f"{login_advice()} Or check what the account may do."
    limits = turn.rate_limits if kind == "rate_limit" else None
    until = None if limits is None else limits.exhausted_until
    return _ADVICE[kind] if until is None else f"The plan is used up until {until:%Y-%m-%d %H:%M} UTC: wait until then."


def _reason(turn: Turn) -> str:
    """Return the CLI's explanation. The model's text does not explain a failure."""
    result = turn.result
    if result.is_error and (result.errors or result.result):
        return "; ".join(result.errors or ()) or (result.result or "").strip()
    return (result.result or "").strip() if result.num_turns == 0 else result.terminal_reason or ""
