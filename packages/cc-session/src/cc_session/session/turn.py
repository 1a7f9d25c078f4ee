"""The outcome of one turn of a session: the turn, its usage and cost, and the failure of a turn in a working process.

The result of an interrupted turn leaves out the tokens for the running API call, or for all calls. But the events and
messages of each call have its usage, and the messages repeat it for each content block: it counts once per message id.

A failure is classified by the result and the CLI messages before it. The result's `subtype` is not enough: a turn
that ended with an API error has the subtype `success`, and a prompt that a hook blocked is not even an error. Measured
on CLI 2.1.329.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Self, TypeAlias, cast

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    RateLimitEvent,
    ResultError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
)  # fmt: skip
from typing_extensions import override

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import ClaudeCodeError, CLIResponse, CLIUsage, JsonValue, ModelUsage, RateLimits
from cc_types.failures import BY_CLI_NAME, BY_KIND, FailureKind, advice_of, failure_of, plan_limit_advice

from ..process.login import login_advice

TurnErrorKind: TypeAlias = FailureKind
"""Kind of failure; `"other"` is any kind without a name here."""

# Words with which the CLI reports that the context window has no room for an answer.
_NO_ROOM = "context window limit"

# Words with which the CLI reports a prompt that a hook has blocked, also by its time limit.
_BLOCKED = "operation blocked by hook"

_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True, slots=True)
class Spent:
    """Money and tokens."""

    cost_usd: float = 0.0
    """In US dollars, by the CLI estimate."""
    models: Mapping[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    """Tokens and cost by model name."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt and all that Claude Code did about it. Amounts are this turn's alone, except in `result`."""

    text: str
    """The model's final text; for an interrupted turn, the main thread's text until then."""
    messages: tuple[Message, ...]
    """All messages in order, the result included, in the SDK types."""
    result: ResultMessage
    """The result message. Cost and usage by model in it are session totals."""
    usage: CLIUsage
    """Tokens, main thread only."""
    model_usage: Mapping[str, ModelUsage]
    """Tokens and cost by model, all threads."""
    cost_usd: float
    """Cost in US dollars, by the CLI estimate."""

    @classmethod
    def of(cls, messages: Iterable[Message], result: ResultMessage, spent: Spent) -> Self:
        """Return the turn with these messages, the result included."""
        messages = tuple(messages)
        response = convert_sdk_messages_to_cli_response(messages)
        return cls(
            text=response.result,
            messages=messages,
            result=result,
            usage=_usage(messages, response.usage, is_cut_off=result.is_error),
            model_usage=spent.models,
            cost_usd=spent.cost_usd,
        )

    @property
    def session_id(self) -> str:
        """The CLI id for the conversation."""
        return self.result.session_id

    @property
    def asked_model(self) -> bool:
        """True if Claude Code has asked the model; else `text` is the CLI's, such as the output of a slash command."""
        return self.result.num_turns > 0

    @property
    def structured_output(self) -> JsonValue:
        """The answer as JSON, if a schema was requested."""
        return self.result.structured_output

    @property
    def rate_limits(self) -> RateLimits | None:
        """The last rate limits reported in this turn: with a subscription, and when they have changed."""
        events = (m.rate_limit_info.raw for m in reversed(self.messages) if isinstance(m, RateLimitEvent))
        return next((limits for event in events if (limits := RateLimits.from_event(event)) is not None), None)

    @property
    def response(self) -> CLIResponse:
        """The result as a typed value. Totals in it are the session's, as the CLI reports them.

        Raises:
            cc_types.MessageParseError: The result is invalid.
        """
        return convert_sdk_messages_to_cli_response(self.messages)


def _usage(messages: Iterable[Message], reported: CLIUsage, *, is_cut_off: bool) -> CLIUsage:
    """Return the usage in the result, or for an interrupted turn the messages' usage, where that is more."""
    if not is_cut_off and any(getattr(reported, count) for count in _COUNTS):
        return reported
    sums = _sums(messages)
    return reported.model_copy(update={count: sums[count] for count in sums if sums[count] > getattr(reported, count)})


def _sums(messages: Iterable[Message]) -> Counter[str]:
    calls: defaultdict[str, Counter[str]] = defaultdict(Counter)
    current, usage = "", None
    for message in messages:
        match message:
            case StreamEvent(
                parent_tool_use_id=None, event={"type": "message_start", "message": {"id": str(current), **body}}
            ):
                usage = body.get("usage")
            case StreamEvent(parent_tool_use_id=None, event={"type": "message_delta", "usage": usage}):
                pass
            case AssistantMessage(parent_tool_use_id=None, message_id=str(current), usage=usage):
                pass
            case _:
                continue
        if isinstance(usage, Mapping):
            counts = cast("Mapping[str, object]", usage)
            # The maximum: counts only grow during a call.
            calls[current] |= Counter({name: count for name in _COUNTS if isinstance(count := counts.get(name), int)})
    return sum(calls.values(), Counter[str]())


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
        sentence = f"The turn failed ({kind}{status}): {reason.rstrip('.')}. {_advice(kind, turn)}".rstrip()
        # Not `super()`: the SDK constructor takes the sentence and the facts, ours only the sentence.
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


def turn_error(turn: Turn, *, max_cost_usd: float | None = None, is_command: bool = False) -> TurnError | None:
    """Return the error if a turn failed or exceeded the cost limit. The CLI answers commands without the model."""
    if max_cost_usd is not None and turn.cost_usd > max_cost_usd:
        return TurnError(kind="budget", turn=turn)
    kind = _kind(turn, is_command=is_command)
    return None if kind is None else TurnError(kind=kind, turn=turn)


def _kind(turn: Turn, *, is_command: bool) -> TurnErrorKind | None:
    result = turn.result
    failure = BY_CLI_NAME.get(result.subtype) or BY_CLI_NAME.get(result.terminal_reason or "")
    if failure is not None:
        return failure.kind
    if not result.is_error:
        return _kind_without_answer(turn, is_command=is_command)
    if result.stop_reason == "refusal":
        return "refusal"
    if _NO_ROOM in turn.text:
        return "too_long"
    if result.api_error_status is not None:
        failure = failure_of(result.api_error_status)
    else:
        names = [message.error for message in turn.messages if isinstance(message, AssistantMessage) and message.error]
        failure = BY_CLI_NAME.get(names[-1]) if names else None
    return "other" if failure is None else failure.kind


def _kind_without_answer(turn: Turn, *, is_command: bool) -> TurnErrorKind | None:
    """Return the kind if the model was not asked, which the CLI does not count as an error: its text is the CLI's."""
    if turn.asked_model:
        return None
    outcomes = [m.data.get("prompt_submit_outcome") for m in turn.messages if isinstance(m, SystemMessage)]
    kinds = [str(cast("dict[str, object]", outcome).get("kind")) for outcome in outcomes if isinstance(outcome, dict)]
    if "blocked_by_hook" in kinds or _BLOCKED in (turn.result.result or ""):
        return "prompt_blocked"
    if any("hook" in kind for kind in kinds):
        return "hook_stopped"
    return None if is_command else "other"


def _advice(kind: TurnErrorKind, turn: Turn) -> str:
    if kind == "auth":
        return f"{login_advice()} Or check what the account may do."
    limits = turn.rate_limits if kind == "rate_limit" else None
    if limits is not None and limits.exhausted_until is not None:
        return plan_limit_advice(limits, limits.exhausted_until)
    status = turn.result.api_error_status
    return advice_of(status) if kind == "invalid_request" and status is not None else BY_KIND[kind].advice


def _reason(turn: Turn) -> str:
    """Return the CLI explanation. The model text does not explain a failure."""
    result = turn.result
    if result.is_error and (result.errors or result.result):
        return "; ".join(result.errors or ()) or (result.result or "").strip()
    return (result.result or "").strip() if result.num_turns == 0 else result.terminal_reason or ""
