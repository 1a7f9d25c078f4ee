"""Tokens that a turn's main thread used, also in an interrupted turn.

The result of an interrupted turn leaves out the running API call, or all calls. But each call's events and messages
have the call's usage, and the messages repeat it for each content block: so it counts once for each message id.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from claude_agent_sdk import AssistantMessage, Message, StreamEvent

from cc_types import CLIUsage

__all__ = ["usage_of"]

_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def usage_of(messages: Iterable[Message], reported: CLIUsage, *, is_cut_off: bool) -> CLIUsage:
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
