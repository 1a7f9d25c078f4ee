"""The answers and tool calls in the CLI's own loop, as one Messages API answer (`api/folding.py`).

Blocks are in order of arrival, and the usage is the sum, with each API call as an iteration. Pure: events go in, events
come out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from cc_session.internals import split_mcp_name
from cc_types import JsonValue

from ..api.conversation import Block, as_mcp_result
from ..api.message import Answer, Event
from ..context.tools import CLAUDE_CODE_SERVER

__all__ = ["LoopAnswer"]

Waits: TypeAlias = Callable[[str, str, dict[str, Any]], bool]
"""A function of a call's id, tool name and input."""


class LoopAnswer:
    """A loop's one message, built from events and tool results.

    The caller's tools are on the MCP server `server_name`. The CLI calls those in `own`, from the CLI's names to the
    caller's; calls to `others` end the answer, and so do calls of the CLI's own tools for which `waits` is true.
    """

    def __init__(
        self, answer: Answer, server_name: str, own: Mapping[str, str], others: Mapping[str, str],
        waits: Waits | None = None,
    ) -> None:  # fmt: skip
        self.message = answer
        """The message as sent to the caller."""
        self.server_name = server_name
        self._own, self._others, self._waits = own, others, waits
        self._steps: list[_Step] = []
        self._next_index = 0
        self._unanswered: set[str] = set()

    @property
    def is_complete(self) -> bool:
        """True if the message has ended; later CLI output is ignored."""
        return self.message.is_complete

    @property
    def calls_others(self) -> bool:
        """True if the message ends in calls that the CLI does not make, and waits for."""
        return self.message.is_complete and self.message.calls_tools

    @property
    def is_within_answer(self) -> bool:
        """True if an API answer has begun and not ended."""
        return bool(self._steps) and not self._steps[-1].has_ended

    @property
    def has_stopped_early(self) -> bool:
        """True if the API's last message ended without a reason, as the CLI ends a truncated answer."""
        return bool(self._steps) and self._steps[-1].has_ended and not self._steps[-1].answer.is_complete

    @property
    def shows_something_at_last(self) -> bool:
        """True if the API's last answer contains more than thinking and whitespace."""
        return self._steps[-1].answer.shows_something

    def feed(self, event: Event) -> list[Event]:
        """Process the API's next event; return the events for the caller."""
        if event["type"] == "message_start":
            self._steps.append(_Step())
        elif not self._steps:
            return []
        step = self._steps[-1]
        step.answer.feed(event)
        match event["type"]:
            case "message_start":
                return self._emit(event) if len(self._steps) == 1 else []
            case "content_block_start":
                return self._begin_block(step, event)
            case "content_block_delta":
                step.has_input.add(event["index"])
                delta = {**event, "index": step.indices[event["index"]]}
                if not step.delayed:
                    return self._emit(delta)
                step.delayed.append(delta)
                return []
            case "content_block_stop":
                return self._end_block(step, event)
            case "message_delta":
                step.end = event
                return []
            case "message_stop":
                return self._end_step(step)
            case _:
                return self._emit(event)

    def feed_results(self, results: Sequence[Block]) -> list[Event]:
        """Process tool results from the CLI; return the events for the caller."""
        if not self._steps or self.is_complete:
            return []
        events: list[Event] = []
        has_waited = bool(self._unanswered)
        for result in results:
            call_id = str(result["tool_use_id"])
            self._steps[-1].answered.add(call_id)
            self._unanswered.discard(call_id)
            start = {"type": "content_block_start", "index": self._next_index, "content_block": as_mcp_result(result)}
            events += self._emit(start, {"type": "content_block_stop", "index": self._next_index})
            self._next_index += 1
        if has_waited and not self._unanswered:
            events += self._finish(self._steps[-1])
        return events

    def _begin_block(self, step: "_Step", event: Event) -> list[Event]:
        step.indices[event["index"]] = self._next_index
        self._next_index += 1
        block = event["content_block"]
        start = {**event, "index": step.indices[event["index"]]}
        if block["type"] != "tool_use":
            return self._emit(start)
        if self._waits is not None and block["name"] not in self._own and block["name"] not in self._others:
            # The form depends on the input, which comes later.
            step.delayed = [start]
            return []
        return self._emit({**start, "content_block": self._for_caller(block)})

    def _for_caller(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return the call under the caller's tool name; Claude Code's tools get the server `claude-code`."""
        name = call["name"]
        if name in self._others:
            return {**call, "name": self._others[name]}
        own = (self.server_name, self._own[name]) if name in self._own else None
        server, tool = own or split_mcp_name(name) or (CLAUDE_CODE_SERVER, name)
        return {**call, "type": "mcp_tool_use", "server_name": server, "name": tool}

    def _end_block(self, step: "_Step", event: Event) -> list[Event]:
        index, block = step.indices[event["index"]], step.answer.block(event["index"])
        events, step.delayed = step.delayed, []
        if events and self._waits is not None:  # the call is complete now
            if self._waits(block["id"], block["name"], block["input"]):
                step.waiting.add(block["id"])
            else:
                events[0] = {**events[0], "content_block": self._for_caller(events[0]["content_block"])}
        if block["type"] == "tool_use" and not block["input"] and event["index"] not in step.has_input:
            # Clients join the arguments from the deltas, and there would be none.
            delta = {"type": "input_json_delta", "partial_json": "{}"}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        return self._emit(*events, {**event, "index": index})

    def _end_step(self, step: "_Step") -> list[Event]:
        step.has_ended = True
        if not step.answer.is_complete:
            return []
        calls = [block for block in step.answer.content if block["type"] == "tool_use"]
        waiting = [call for call in calls if call["name"] in self._others or call["id"] in step.waiting]
        made = {str(call["id"]) for call in calls if call not in waiting}
        if made and not waiting and step.answer.stop_reason == "tool_use":
            return []
        self._unanswered = made - step.answered if waiting else set()
        return [] if self._unanswered else self._finish(step)

    def _finish(self, step: "_Step") -> list[Event]:
        end = step.end
        if len(self._steps) > 1:
            end = {**end, "usage": _total([step.answer.usage for step in self._steps])}
        return self._emit(end, {"type": "message_stop"})

    def _emit(self, *events: Event) -> list[Event]:
        for event in events:
            self.message.feed(event)
        return [*events]


class _Step:
    """An API call in the loop."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.indices: dict[int, int] = {}
        """From the block's index in the API's message to the index in the caller's message."""
        self.has_input: set[int] = set()
        self.end: Event = {}
        self.has_ended = False
        self.answered: set[str] = set()
        self.delayed: list[Event] = []
        self.waiting: set[str] = set()


def _total(usages: Sequence[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return a loop's usage: the sum, and the usage in each API call."""
    iterations: list[JsonValue] = [{"type": "message", **_counts(usage)} for usage in usages]
    return {**_sum(usages), "iterations": iterations}


def _counts(usage: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return {**{name: usage.get(name) or 0 for name in names}, "cache_creation": usage.get("cache_creation")}


def _sum(usages: Sequence[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Add up numbers, also in objects; for anything else the last value counts."""
    total: dict[str, JsonValue] = {}
    for usage in usages:
        for name, value in usage.items():
            before = total.get(name)
            if isinstance(value, dict) and isinstance(before, dict):
                total[name] = _sum([before, value])
            elif isinstance(value, (int, float)) and isinstance(before, (int, float)) and not isinstance(value, bool):
                total[name] = before + value
            elif value is not None or name not in total:
                total[name] = value
    return total
