"""The CLI loop as one Messages API answer: the CLI calls tools by itself, and asks the API again and again.

The blocks of all answers and tool calls are in order of arrival (`api/folding.py` has their form), and the usage
is the sum, with each API call as an iteration. Pure: messages go in, events come out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cc_session.internals import split_mcp_name
from cc_types import JsonValue

from ..api.conversation import Block
from ..api.folding import as_mcp_result
from ..api.response import Answer, Event
from ..context import CLAUDE_CODE_SERVER, LoopStep
from .calls import Approvals
from .request import CALLING_API

_COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class LoopAnswer:
    """A loop's one message, built from events and tool results.

    The caller's tools are on the MCP server `server_name`. The CLI calls those in `own`, from the CLI names to the
    caller's; calls to `others` end the answer, and so do calls of the CLI tools that wait for `approvals`.
    """

    def __init__(
        self, answer: Answer, server_name: str, own_tools: Mapping[str, str], other_tools: Mapping[str, str],
        approvals: Approvals | None = None,
    ) -> None:  # fmt: skip
        self.message = answer
        self.server_name = server_name
        self._own_tools, self._other_tools, self._approvals = own_tools, other_tools, approvals
        self._steps: list[_Step] = []
        self._next_index = 0
        self._unanswered: set[str] = set()

    @property
    def last_step(self) -> "_Step | None":
        """The last API call."""
        return self._steps[-1] if self._steps else None

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
                if len(self._steps) == 1:
                    return self._emit(event)
                self._count()
                return []
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
                self._count()
                return []
            case "message_stop":
                return self._end_step(step)
            case _:
                return self._emit(event)

    def feed_results(self, results: Sequence[Block]) -> list[Event]:
        """Process tool results from the CLI; return the events for the caller."""
        if not self._steps or self.message.is_complete:  # later output is ignored
            return []
        step = self._steps[-1]
        if not step.has_ended:
            # The CLI calls a tool while the answer's later calls still come; in one message the results follow all.
            step.early += results
            return []
        has_waited = bool(self._unanswered)
        events = self._emit_results(step, results)
        if has_waited and not self._unanswered:
            events += self._finish(step)
        return events

    def _emit_results(self, step: "_Step", results: Sequence[Block]) -> list[Event]:
        events: list[Event] = []
        for result in results:
            call_id = str(result["tool_use_id"])
            if call_id in step.waiting:
                continue  # only the caller answers
            step.answered.add(call_id)
            self._unanswered.discard(call_id)
            start = {"type": "content_block_start", "index": self._next_index, "content_block": as_mcp_result(result)}
            events += self._emit(start, {"type": "content_block_stop", "index": self._next_index})
            self._next_index += 1
        return events

    def take_step(self) -> LoopStep | None:
        """Return the last API call when it has ended, if the CLI makes calls in it, and only once."""
        step = self.last_step
        if step is None or not step.makes_calls or step.is_told:
            return None
        step.is_told = True
        names = [block["name"] for block in step.answer.content if block["type"] == "tool_use"]
        return LoopStep(step.answer.billed, sum(name in self._own_tools for name in names), self._ends(step))

    @property
    def is_held_up(self) -> bool:
        """True if calls that end the answer may keep the CLI from its own calls, of which it makes some alone."""
        if not self._unanswered or not self.calls_api:
            return bool(self._unanswered)
        # Calls to the API run beside the caller's tools, but not behind the limit that stops the next API call.
        step = self._steps[-1]
        open_calls = [call for call in step.answer.content if call.get("id") in self._unanswered | step.waiting]
        while not self._is_api_call(open_calls[-1]):
            open_calls.pop()
        return not all(self._is_api_call(call) or call["name"] in self._other_tools for call in open_calls)

    @property
    def calls_api(self) -> bool:
        """True if an open call of the CLI calls the API by itself."""
        return any(map(self._is_api_call, self._steps[-1].answer.content))

    def _is_api_call(self, block: Block) -> bool:
        step = self._steps[-1]
        return block.get("name") in CALLING_API and block["id"] not in step.answered | step.waiting

    def own_call(self, call_id: str) -> Block | None:
        """Return a call in the last API call to one of the caller's tools that the CLI calls."""
        calls = self._steps[-1].answer.content if self._steps else []
        return next((call for call in calls if call.get("id") == call_id and call.get("name") in self._own_tools), None)

    def own_name(self, call: Block) -> str:
        """Return the caller's name of a tool that the CLI calls."""
        return self._own_tools[str(call["name"])]

    def _begin_block(self, step: "_Step", event: Event) -> list[Event]:
        step.indices[event["index"]] = self._next_index
        self._next_index += 1
        block = event["content_block"]
        start = {**event, "index": step.indices[event["index"]]}
        if block["type"] != "tool_use":
            return self._emit(start)
        if (
            self._approvals is not None
            and block["name"] not in self._own_tools
            and block["name"] not in self._other_tools
        ):
            # The form depends on the input, which comes later.
            step.delayed = [start]
            return []
        return self._emit({**start, "content_block": self._for_caller(block)})

    def _for_caller(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return the call under the caller's tool name; Claude Code tools get the server `claude-code`."""
        name = call["name"]
        if name in self._other_tools:
            return {**call, "name": self._other_tools[name]}
        place = (self.server_name, self._own_tools[name]) if name in self._own_tools else None
        server, tool = place or split_mcp_name(name) or (CLAUDE_CODE_SERVER, name)
        return {**call, "type": "mcp_tool_use", "server_name": server, "name": tool}

    def _end_block(self, step: "_Step", event: Event) -> list[Event]:
        index, block = step.indices[event["index"]], step.answer.block(event["index"])
        events, step.delayed = step.delayed, []
        if events and self._approvals is not None:  # the call is complete now
            if self._approvals.waits(block["id"], block["name"], block["input"]):
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
        events = self._emit_results(step, step.early)
        if not step.answer.is_complete:
            return events
        calls = [block for block in step.answer.content if block["type"] == "tool_use"]
        step.waiting |= {str(call["id"]) for call in calls if call["name"] in self._other_tools}
        made = {str(call["id"]) for call in calls} - step.waiting
        step.makes_calls = bool(made)
        if made and not self._ends(step):
            return events
        self._unanswered = made - step.answered if step.waiting else set()
        return events if self._unanswered else [*events, *self._finish(step)]

    def _ends(self, step: "_Step") -> bool:
        """Return true if no API call follows a step with calls."""
        return bool(step.waiting) or step.answer.stop_reason != "tool_use"

    def _finish(self, step: "_Step") -> list[Event]:
        end = step.end if len(self._steps) == 1 else {**step.end, "usage": self.message.usage}
        return self._emit(end, {"type": "message_stop"})

    def _count(self) -> None:
        """Count the API calls so far in the message, which may break off; the caller gets the sum at the end."""
        usages = [step.answer.usage for step in self._steps]
        usage = usages[0] if len(usages) == 1 else _total(usages)
        self.message.feed({"type": "message_delta", "delta": {}, "usage": usage})

    def _emit(self, *events: Event) -> list[Event]:
        for event in events:
            self.message.feed(event)
        return [*events]


class _Step:
    """An API call in the loop."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.indices: dict[int, int] = {}
        """From the block index in the API message to the index in the caller's message."""
        self.has_input: set[int] = set()
        self.end: Event = {}
        self.has_ended = False
        self.makes_calls = False
        """True if it has calls that the CLI makes."""
        self.is_told = False
        self.answered: set[str] = set()
        self.early: list[Block] = []
        """Results that came before the API message had ended."""
        self.delayed: list[Event] = []
        self.waiting: set[str] = set()


def _total(usages: Sequence[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return a loop's usage: the sum, and the usage in each API call."""
    iterations: list[JsonValue] = []
    for usage in usages:
        counts: dict[str, JsonValue] = {name: usage.get(name) or 0 for name in _COUNTS}
        iterations.append({"type": "message", **counts, "cache_creation": usage.get("cache_creation")})
    return {**_sum(usages), "iterations": iterations}


def _sum(usages: Sequence[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Add up numbers, also in objects; for anything else the last value counts."""
    total: dict[str, JsonValue] = {}
    for usage in usages:
        for name, value in usage.items():
            earlier_value = total.get(name)
            if isinstance(value, dict) and isinstance(earlier_value, dict):
                total[name] = _sum([earlier_value, value])
            elif (
                isinstance(value, (int, float))
                and isinstance(earlier_value, (int, float))
                and not isinstance(value, bool)
            ):
                total[name] = earlier_value + value
            elif value is not None or name not in total:
                total[name] = value
    return total
