"""The CLI loop as one Messages API answer: the CLI calls tools by itself, and asks the API again and again.

The blocks of all answers and tool calls are in order of arrival (`api/folding.py` has their form), and the usage
is the sum, with each API call as an iteration. Pure: messages go in, events come out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    ToolResultBlock,
    UserMessage,
)  # fmt: skip
from typing_extensions import override

from cc_session import Session
from cc_session.internals import RENAMED_TOOLS, is_mcp_name, split_mcp_name
from cc_types import ClaudeCodeError, CLIConnectionError, JsonValue

from ..api.conversation import Block
from ..api.folding import as_mcp_result
from ..api.response import Answer, Event, invalid
from ..context import CLAUDE_CODE_SERVER, LoopEndedError
from ..process.plan import Reading
from .calls import Approvals, ToolServer, TurnCalls
from .request import LoopRequest

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
            step.answered.add(call_id)
            self._unanswered.discard(call_id)
            start = {"type": "content_block_start", "index": self._next_index, "content_block": as_mcp_result(result)}
            events += self._emit(start, {"type": "content_block_stop", "index": self._next_index})
            self._next_index += 1
        return events

    def take_step(self) -> Mapping[str, JsonValue] | None:
        """Return the last API call message without content as soon as all its calls have results, and only once."""
        step = self.last_step
        if step is None or step.is_told or not step.has_ended or self.message.is_complete:
            return None
        calls = {str(block["id"]) for block in step.answer.content if block["type"] == "tool_use"}
        step.is_told = calls <= step.answered
        return step.answer.billed if step.is_told else None

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
        waiting = [call for call in calls if call["name"] in self._other_tools or call["id"] in step.waiting]
        made = {str(call["id"]) for call in calls if call not in waiting}
        if made and not waiting and step.answer.stop_reason == "tool_use":
            return events
        self._unanswered = made - step.answered if waiting else set()
        return events if self._unanswered else [*events, *self._finish(step)]

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
        """From the block index in the API message to the index in the caller's message."""
        self.has_input: set[int] = set()
        self.end: Event = {}
        self.has_ended = False
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


class LoopReading(Reading):
    """A loop's one message, built from the CLI messages. The session knows the cost."""

    repeats_refused_calls = True

    def __init__(
        self, answer: Answer, request: LoopRequest, approvals: Approvals | None, session: Session,
        server: ToolServer | None,
    ) -> None:  # fmt: skip
        super().__init__(answer)
        self.calls: TurnCalls = TurnCalls()
        self.approvals = approvals
        self.context = request.context
        self._session, self._server = session, server
        context, key = self.context, request.tool_server
        own_tools = context.claude_code_tools
        names = [] if own_tools is None else [name for name in own_tools.names if not is_mcp_name(name)]
        self.allowed_tools = {RENAMED_TOOLS.get(name, name) for name in names}
        """Claude Code's own tools that the request allows, by their present names."""
        self._missing_tools = set[str]()
        self._lost_tool = ""
        self._max_turns = context.max_turns
        caller_tools = frozenset[str]() if context.tools is None else context.tools.names
        names = {} if key is None else {key.cli_name(name): name for name in key.names()}
        self._loop = LoopAnswer(
            answer,
            "" if key is None else key.name,
            {cli_name: name for cli_name, name in names.items() if name in caller_tools},
            {cli_name: name for cli_name, name in names.items() if name not in caller_tools},
            approvals,
        )

    @property
    @override
    def has_run_tools(self) -> bool:
        return self._server is not None and self._server.has_run

    @override
    def take_step(self) -> Mapping[str, JsonValue] | None:
        return None if self.is_broken else self._loop.take_step()

    @override
    def with_cost(self, result: ResultMessage) -> ResultMessage:
        # The CLI reports the process cost over all requests.
        spent = self._session.last_spent
        models = {name: usage.model_dump(by_alias=True) for name, usage in spent.models.items()}
        return replace(result, total_cost_usd=spent.cost_usd, model_usage=models)

    @property
    @override
    def was_blocked(self) -> bool:
        return False  # the limit is the CLI's own here, and a second attempt would not have the history

    @override
    def _feed(self, message: Message) -> Sequence[Event]:
        self.calls.note(message)
        match message:
            case StreamEvent() | AssistantMessage() | UserMessage() if message.parent_tool_use_id is not None:
                return ()  # from a sub-agent
            case UserMessage(content=[*blocks]) if not self.is_broken:
                results = [_as_block(block) for block in blocks if isinstance(block, ToolResultBlock)]
                self._note_lost(results)
                return () if self.is_broken else self._loop.feed_results(results)
            case SystemMessage(subtype="init", data={"tools": [*tools]}):
                self._missing_tools = self.allowed_tools - {RENAMED_TOOLS.get(name, name) for name in tools}
                self.is_broken |= bool(self._missing_tools)
                return ()
            case _:
                return super()._feed(message)

    @override
    def failure(self, address: str) -> ClaudeCodeError:
        if self._lost_tool:
            reason = f"Claude Code has lost the connection to the tool {self._lost_tool!r} during a call"
            return CLIConnectionError(reason=reason, advice="Check what the call has done, and send the request again.")
        if self._missing_tools:
            return invalid(f"This Claude Code has no tool {', '.join(sorted(self._missing_tools))}")
        if self.result is not None and self.result.subtype == "error_max_turns":
            limit = f"max_turns={self._max_turns}"
            self.context.ended_by = error = LoopEndedError(message=f"The request has reached its limit {limit}")
            return error
        return super().failure(address)

    @property
    @override
    def ends_by_itself(self) -> bool:
        # Calls that are not the CLI's to make keep it waiting, and after an empty answer it asks again.
        step = self._loop.last_step
        shows_something = step is not None and step.answer.shows_something
        if self.answer.is_complete and (self.answer.calls_tools or not shows_something):
            return False
        return super().ends_by_itself

    def _note_lost(self, results: Sequence[Block]) -> None:
        """Break the answer off if the CLI itself has answered a call that only the caller's tools answer."""
        if (server := self._server) is None or self.answer.is_complete:
            return
        for result in results:
            call = self._loop.own_call(str(result["tool_use_id"]))
            if call is None or not result.get("is_error") or server.has_answered(str(call["id"])):
                continue
            if self._may_refuse(call):
                continue
            self._lost_tool, self.is_broken, server.is_gone = self._loop.own_name(call), True, True

    def _may_refuse(self, call: Block) -> bool:
        """Return true if a policy may have refused a call."""
        own_tools = self.context.claude_code_tools
        policy = None if own_tools is None else own_tools.policy
        arguments = cast("Mapping[str, Any]", call["input"])
        return policy is not None and policy.verdict(str(call["name"]), arguments).behavior in ("ask", "deny")

    @override
    def _feed_event(self, event: Event) -> Sequence[Event]:
        step = self._loop.last_step
        if event["type"] == "message_start" and (self.apology is not None or (step and not step.has_ended)):
            self.is_broken = True  # the CLI repeats events already sent
            return ()
        events, step = self._loop.feed(event), self._loop.last_step
        # The CLI ends a truncated answer without a reason.
        self.is_broken |= bool(step and step.has_ended and not step.answer.is_complete and self.apology is None)
        return events


def _as_block(result: ToolResultBlock) -> Block:
    content = cast(JsonValue, result.content)
    block: Block = {"type": "tool_result", "tool_use_id": result.tool_use_id, "content": content}
    return {**block, "is_error": True} if result.is_error else block
