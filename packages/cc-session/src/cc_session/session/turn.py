"""What came of one turn of a session."""

from collections.abc import Mapping
from dataclasses import dataclass

from claude_agent_sdk import Message, RateLimitEvent, ResultMessage

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import CLIResponse, CLIUsage, JsonValue, ModelUsage, RateLimits

__all__ = ["Turn"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt and all that Claude Code did about it. Nothing in it counts what other turns took."""

    text: str
    """What the model said at last; for a turn that was cut off, what the main thread had said until then."""
    messages: tuple[Message, ...]
    """All messages of the turn in order, its result included, as the SDK has them."""
    result: ResultMessage
    """The result message. Its costs and its usage by model are those of the whole session so far."""
    usage: CLIUsage
    """Tokens of this turn, main thread only."""
    model_usage: Mapping[str, ModelUsage]
    """Tokens and cost of this turn by model, all threads."""
    cost_usd: float
    """What this turn cost, in US dollars, as the CLI reckons."""

    @property
    def session_id(self) -> str:
        """The CLI's id of the conversation."""
        return self.result.session_id

    @property
    def structured_output(self) -> JsonValue:
        """The answer as JSON, if a schema was asked for."""
        return self.result.structured_output

    @property
    def rate_limits(self) -> RateLimits | None:
        """The limits that the CLI told last in this turn: with a subscription, and when they have changed."""
        told = (m.rate_limit_info.raw for m in reversed(self.messages) if isinstance(m, RateLimitEvent))
        return next((limits for info in told if (limits := RateLimits.from_event(info)) is not None), None)

    @property
    def response(self) -> CLIResponse:
        """The result as a typed value. Its totals are those of the session, as the CLI reports them.

        Raises:
            cc_types.MessageParseError: The result is not what a result should be.
        """
        return convert_sdk_messages_to_cli_response(self.messages)
