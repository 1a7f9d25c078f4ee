"""Parsing of a turn: from the CLI's messages to the events in the API's one answer.

Drops events from a second API call, and an end that the API did not send. Pure: messages go in, events come out.
"""

from collections.abc import Sequence

from claude_agent_sdk import AssistantMessage, Message, ResultMessage, StreamEvent, SystemMessage

from cc_types import ClaudeCodeError, CLIConnectionError

from ..api.cost import with_cost
from ..api.failure import UnreadableEventError, turn_error
from ..api.message import Answer, Event

__all__ = ["Reading"]

# After these the turn is over, and the CLI keeps the answer.
_KEPT = frozenset({"end_turn", "pause_turn", "stop_sequence"})


class Reading:
    """A turn's answer, built from the CLI's messages, as sent to the caller."""

    repeats_refused_calls = False
    """True if a second API call after a refusal belongs to the turn."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.is_broken: bool = False
        """True if there will be no complete answer."""
        self.has_begun: bool = False
        """True if the CLI has begun the turn; messages before that are about an earlier turn."""
        self._cli_text: AssistantMessage | None = None
        self._result: ResultMessage | None = None

    def feed(self, message: Message) -> Sequence[Event]:
        """Process the CLI's next message; return the events for the caller."""
        self.has_begun |= isinstance(message, SystemMessage) and message.subtype == "init"
        match message:
            case StreamEvent(event={"type": str()}):
                pass
            case StreamEvent(event=event):
                raise UnreadableEventError(event)
            case _:
                pass
        return self._feed(message) if self.has_begun else ()

    def _feed(self, message: Message) -> Sequence[Event]:
        match message:
            case StreamEvent(event=event) if not self.answer.is_complete and not self.is_broken:
                if not self.has_apology or not _is_made_up(event):
                    return self._feed_event(event)
            case AssistantMessage() if message.error is not None:
                self._cli_text = message
            case ResultMessage():
                self._result = message
            case _:
                pass
        return ()

    @property
    def has_ended(self) -> bool:
        """True if the CLI has ended the turn."""
        return self._result is not None

    @property
    def has_status(self) -> bool:
        """True if the turn ended with an error that the API has sent."""
        return self._result is not None and self._result.api_error_status is not None

    @property
    def was_blocked(self) -> bool:
        """True if the CLI made no API call, because it computed too long a prompt."""
        result = self._result
        if result is None or self.answer.has_begun or not result.is_error:
            return False
        return result.terminal_reason == "blocking_limit"

    @property
    def has_run_tools(self) -> bool:
        """True if the CLI has called tools in this turn."""
        return False

    def with_cost(self, result: ResultMessage) -> ResultMessage:
        """Return the turn's result with the cost for this request alone."""
        return with_cost(result, self.answer.as_json())

    def failure(self, address: str) -> ClaudeCodeError:
        """Return the reason for the missing or incomplete answer from the API at `address`."""
        if self.was_blocked:
            return CLIConnectionError(reason="Claude Code has not sent the request", advice="Send it again.")
        return turn_error(self._result, self._cli_text, address)

    @property
    def has_apology(self) -> bool:
        """True if the CLI has reported a failed API call."""
        return self._cli_text is not None

    @property
    def ends_by_itself(self) -> bool:
        """True if the CLI will end the turn, or has ended it, without another API call.

        Tool calls end it, and a refusal. After an answer that shows nothing, that has reached a limit, or that
        announces a tool call without making it, the CLI may ask again.
        """
        if not self.answer.is_complete:
            return self._result is not None
        if self.answer.stop_reason in _KEPT:
            return self.answer.shows_something
        return self.answer.stop_reason == "refusal" or self.answer.calls_tools

    def _feed_event(self, event: Event) -> Sequence[Event]:
        kind = event["type"]
        if kind == "message_start" and (self.answer.has_begun or self.has_apology):
            self.is_broken = True  # the CLI asks the API again, which the caller did not request
            return ()
        self.answer.feed(event)
        if kind == "message_stop" and not self.answer.is_complete:
            self.is_broken = not self.has_apology  # after an apology the result has more details
            return ()
        return (event,)


def _is_made_up(event: Event) -> bool:
    """Return true if the CLI closed a stream that the API did not: it has no reason for the end."""
    if event["type"] == "message_delta":
        return event.get("delta", {}).get("stop_reason") is None
    return event["type"] == "content_block_stop"
