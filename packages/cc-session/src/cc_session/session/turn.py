"""The outcome of one turn of a session.

An interrupted turn's result leaves out the tokens for the running API call, or for all calls. But each call's events
and messages have its usage, and the messages repeat it for each content block: so it counts once per message id.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self, cast

from claude_agent_sdk import AssistantMessage, Message, RateLimitEvent, ResultMessage, StreamEvent

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import CLIResponse, CLIUsage, JsonValue, ModelUsage, RateLimits

from .spending import Spent

__all__ = ["Turn"]

_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt and all that Claude Code did about it. Amounts are this turn's alone, except in `result`."""

    text: str
    """The model's final text; for an interrupted turn, the main thread's text until then."""
    messages: tuple[Message, ...]
    """All messages in order, the result included, in the SDK's types."""
    result: ResultMessage
    """The result message. Cost and usage by model in it are session totals."""
    usage: CLIUsage
    """Tokens, main thread only."""
    model_usage: Mapping[str, ModelUsage]
    """Tokens and cost by model, all threads."""
    cost_usd: float
    """Cost in US dollars, by the CLI's estimate."""

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
        """The CLI's id for the conversation."""
        return self.result.session_id

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
    more = {count: sums[count] for count in _COUNTS if sums[count] > getattr(reported, count)}
    return reported.model_copy(update=more) if more else reported


def _sums(messages: Iterable[Message]) -> dict[str, int]:
    calls: dict[str, dict[str, int]] = {}
    current = ""
    for message in messages:
        match message:
            case StreamEvent(
                parent_tool_use_id=None, event={"type": "message_start", "message": {"id": str(current), **body}}
            ):
                _take(calls, current, body.get("usage"))
            case StreamEvent(parent_tool_use_id=None, event={"type": "message_delta", "usage": usage}):
                _take(calls, current, usage)
            case AssistantMessage(parent_tool_use_id=None, message_id=str(message_id), usage=usage):
                _take(calls, message_id, usage)
            case _:
                pass
    return {count: sum(call.get(count, 0) for call in calls.values()) for count in _COUNTS}


def _take(calls: dict[str, dict[str, int]], message_id: str, usage: object) -> None:
    """Record a call's usage so far. Counts only grow during a call."""
    call = calls.setdefault(message_id, {})
    if isinstance(usage, Mapping):
        for count in _COUNTS:
            value = cast("Mapping[str, object]", usage).get(count)
            if isinstance(value, int):
                call[count] = max(call.get(count, 0), value)
