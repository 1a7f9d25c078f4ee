"""The outcome of one turn of a session."""

from collections.abc import Mapping
from dataclasses import dataclass

from claude_agent_sdk import Message, RateLimitEvent, ResultMessage

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import CLIResponse, CLIUsage, JsonValue, ModelUsage, RateLimits

__all__ = ["Turn"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt and all that Claude Code did about it. Includes no amounts of other turns."""

    text: str
    """The model's final text; for an interrupted turn, the main thread's text until then."""
    messages: tuple[Message, ...]
    """All messages of the turn in order, its result included, in the SDK's types."""
    result: ResultMessage
    """The result message. Its costs and its usage by model are session totals."""
    usage: CLIUsage
    """Tokens of this turn, main thread only."""
    model_usage: Mapping[str, ModelUsage]
    """Tokens and cost of this turn by model, all threads."""
    cost_usd: float
    """Cost of this turn, in US dollars, by the CLI's estimate."""

    @property
    def session_id(self) -> str:
        """The CLI's id of the conversation."""
        return self.result.session_id

    @property
    def structured_output(self) -> JsonValue:
        """The answer as JSON, if a schema was requested."""
        return self.result.structured_output

    @property
    def rate_limits(self) -> RateLimits | None:
        """The last rate limits reported in this turn: with a subscription, and when they have changed."""
        told = (m.rate_limit_info.raw for m in reversed(self.messages) if isinstance(m, RateLimitEvent))
        return next((limits for info in told if (limits := RateLimits.from_event(info)) is not None), None)

    @property
    def response(self) -> CLIResponse:
        """The result as a typed value. Its totals are those of the session, as the CLI reports them.

        Raises:
            cc_types.MessageParseError: The result is invalid.
        """
        return convert_sdk_messages_to_cli_response(self.messages)
