"""The CLI loop as one Messages API answer: the CLI calls tools by itself, and asks the API again and again.

The blocks of all answers and tool calls are in order of arrival (`api/folding.py` has their form), and the usage
is the sum, with each API call as an iteration. Pure: messages go in, events come out.
"""

from collections.abc import Mapping, Sequence

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

    The caller's tools are on the MCP server `server_name`. The CLI calls those in `own_tools`, from the CLI names to
    the caller's. A call to `other_tools` ends the answer, and so does a call of a CLI tool that waits for `approvals`.
    Then all calls to the caller's tools in this API call are the caller's, who answers them.
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
                step.delayed.append({**event, "index": step.indices[event["index"]]})
                return self._release(step)
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
        if step is None or not step.made or step.is_told:
            return None
        step.is_told = True
        own_calls = sum(call["id"] in step.made for call in self._own_calls(step))
        return LoopStep(step.answer.billed, own_calls, self._ends(step))

    @property
    def is_held_up(self) -> bool:
        """True if the caller's calls may keep the CLI from its own calls, of which it makes some alone."""
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

    def is_held(self, call_id: str | None) -> bool:
        """Return true if only the caller answers a call in the last API call; an old CLI does not send the id."""
        waiting = self._steps[-1].waiting
        return bool(waiting) if call_id is None else call_id in waiting

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
        step.delayed.append({**event, "index": step.indices[event["index"]]})
        if block["type"] == "tool_use":
            if block["name"] in self._other_tools:
                step.waiting.add(block["id"])
            is_input_needed = self._approvals is not None and self._is_cli_call(block)
            step.has_open_call = is_input_needed or self._depends_on_later_calls(step)
        return self._release(step)

    def _depends_on_later_calls(self, step: "_Step") -> bool:
        """Return true if it is open whether the caller answers the calls to its tools."""
        can_end = bool(self._other_tools) or self._approvals is not None
        return can_end and not step.waiting and bool(self._own_calls(step))

    def _release(self, step: "_Step") -> list[Event]:
        """Emit the delayed events, unless the form of a call in them is still open."""
        if step.has_open_call:
            return []
        delayed, step.delayed = step.delayed, []
        return self._emit(*(self._for_caller(step, event) for event in delayed))

    def _for_caller(self, step: "_Step", event: Event) -> Event:
        """Return an event with a call under the caller's tool name; Claude Code tools get the server `claude-code`."""
        match event:
            case {
                "type": "content_block_start",
                "content_block": {"type": "tool_use", "id": call, "name": name} as block,
            }:
                pass
            case _:
                return event
        own_name = self._own_tools.get(name)
        if call in step.waiting or (own_name is not None and step.waiting):
            renamed = {**block, "name": own_name or self._other_tools.get(name, name)}
        else:
            place = None if own_name is None else (self.server_name, own_name)
            server, tool = place or split_mcp_name(name) or (CLAUDE_CODE_SERVER, name)
            renamed = {**block, "type": "mcp_tool_use", "server_name": server, "name": tool}
        return {**event, "content_block": renamed}

    def _end_block(self, step: "_Step", event: Event) -> list[Event]:
        index, block = step.indices[event["index"]], step.answer.block(event["index"])
        if block["type"] == "tool_use":
            if self._approvals is not None and self._is_cli_call(block):  # the call is complete now
                if self._approvals.waits(block["id"], block["name"], block["input"]):
                    step.waiting.add(block["id"])
            if not block["input"] and event["index"] not in step.has_input:
                # Clients join the arguments from the deltas, and there would be none.
                delta = {"type": "input_json_delta", "partial_json": "{}"}
                step.delayed.append({"type": "content_block_delta", "index": index, "delta": delta})
        step.delayed.append({**event, "index": index})
        step.has_open_call = self._depends_on_later_calls(step)
        return self._release(step)

    def _is_cli_call(self, block: Block) -> bool:
        return block["name"] not in self._own_tools and block["name"] not in self._other_tools

    def _own_calls(self, step: "_Step") -> list[Block]:
        return [block for block in step.answer.content if block.get("name") in self._own_tools]

    def _end_step(self, step: "_Step") -> list[Event]:
        step.has_ended, step.has_open_call = True, False
        events = self._release(step)
        if step.waiting:
            step.waiting |= {str(call["id"]) for call in self._own_calls(step)}
        events += self._emit_results(step, step.early)
        if not step.answer.is_complete:
            return events
        calls = {str(block["id"]) for block in step.answer.content if block["type"] == "tool_use"}
        step.made = calls - step.waiting
        if step.made and not self._ends(step):
            return events
        self._unanswered = step.made - step.answered if step.waiting else set()
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
        self.made: set[str] = set()
        """Ids of the calls that the CLI makes."""
        self.is_told = False
        self.answered: set[str] = set()
        self.early: list[Block] = []
        """Results that came before the API message had ended."""
        self.delayed: list[Event] = []
        self.has_open_call = False
        """True if a call in `delayed` may get another form."""
        self.waiting: set[str] = set()
        """Ids of the calls that only the caller answers."""


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
