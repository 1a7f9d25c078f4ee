"""The answers and tool calls in the CLI's own loop, as one Messages API answer (`api/folding.py`).

Blocks are in order of arrival, and the usage is the sum, with each API call as an iteration. Pure: events go in, events
come out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from cc_types import JsonValue

from ..api.conversation import Block, as_mcp_result
from ..api.message import Answer, Event
from ..context.tools import server_and_tool

__all__ = ["LoopAnswer"]

Waits: TypeAlias = Callable[[str, str, dict[str, Any]], bool]


class LoopAnswer:
    """A loop's one message, built from events and tool results.

    Args:
        answer: Gets the message, as sent to the caller.
        server_name: The MCP server of the caller's tools.
        own: The caller's tools that the CLI calls, from the CLI's names to the caller's.
        others: The caller's tools whose calls end the answer, likewise.
        waits: Returns true if a call of the CLI's own tools also ends the answer; takes its id, tool name and input.
    """

    def __init__(
        self,
        answer: Answer,
        server_name: str,
        own: Mapping[str, str],
        others: Mapping[str, str],
        waits: Waits | None = None,
    ) -> None:
        self.message = answer
        """The message as sent to the caller."""
        self.server_name = server_name
        self._own = own
        self._others = others
        self._waits = waits
        self._steps: list[_Step] = []
        self._next_index = 0
        self._unanswered: set[str] = set()
        self._waits_for_results = False

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
                return self._emit_or_delay(step, {**event, "index": step.indices[event["index"]]})
            case "content_block_stop":
                return self._decide(step, event["index"]) + self._end_block(step, event)
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
        for result in results:
            call_id = str(result["tool_use_id"])
            self._steps[-1].answered.add(call_id)
            self._unanswered.discard(call_id)
            events += self._emit_block(as_mcp_result(result))
        if self._waits_for_results and not self._unanswered:
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

    def _emit_or_delay(self, step: "_Step", event: Event) -> list[Event]:
        if not step.delayed:
            return self._emit(event)
        step.delayed.append(event)
        return []

    def _decide(self, step: "_Step", index: int) -> list[Event]:
        """Release the delayed events, now that the call is complete."""
        if not step.delayed or self._waits is None:
            return []
        (start, *deltas), step.delayed = step.delayed, []
        call = step.answer.block(index)
        if self._waits(call["id"], call["name"], call["input"]):
            step.waiting.add(call["id"])
        else:
            start = {**start, "content_block": self._for_caller(start["content_block"])}
        return [emitted for event in (start, *deltas) for emitted in self._emit(event)]

    def _for_caller(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return the call under the caller's tool name; Claude Code's tools get the server `claude-code`."""
        name = call["name"]
        if name in self._others:
            return {**call, "name": self._others[name]}
        server, tool = (self.server_name, self._own[name]) if name in self._own else server_and_tool(name)
        return {**call, "type": "mcp_tool_use", "server_name": server, "name": tool}

    def _end_block(self, step: "_Step", event: Event) -> list[Event]:
        index = step.indices[event["index"]]
        events: list[Event] = []
        block = step.answer.block(event["index"])
        if block["type"] == "tool_use" and not block["input"] and event["index"] not in step.has_input:
            # Clients join the arguments from the deltas, and there would be none.
            delta = {"type": "input_json_delta", "partial_json": "{}"}
            events += self._emit({"type": "content_block_delta", "index": index, "delta": delta})
        return events + self._emit({**event, "index": index})

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
        self._waits_for_results = bool(self._unanswered)
        return [] if self._waits_for_results else self._finish(step)

    def _finish(self, step: "_Step") -> list[Event]:
        end = step.end
        if len(self._steps) > 1:
            end = {**end, "usage": _total([step.answer.usage for step in self._steps])}
        return self._emit(end) + self._emit({"type": "message_stop"})

    def _emit_block(self, block: dict[str, Any]) -> list[Event]:
        index = self._next_index
        self._next_index += 1
        start: Event = {"type": "content_block_start", "index": index, "content_block": block}
        return self._emit(start) + self._emit({"type": "content_block_stop", "index": index})

    def _emit(self, event: Event) -> list[Event]:
        self.message.feed(event)
        return [event]


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
