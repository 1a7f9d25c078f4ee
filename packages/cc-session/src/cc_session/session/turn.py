"""The outcome of one turn of a session."""

from collections.abc import Mapping
from dataclasses import dataclass

from claude_agent_sdk import Message, RateLimitEvent, ResultMessage

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import CLIResponse, CLIUsage, JsonValue, ModelUsage, RateLimits

__all__ = ["Turn"]


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
