"""The answers and tool calls of the CLI's own loop, as one answer of the Messages API.

The API has a form for server-side tools: `mcp_tool_use` and `mcp_tool_result` blocks in the model's message. So a loop
of many API calls becomes one message. Its blocks are in order of arrival, and its usage is the sum, with each API call
as an iteration. A later request has that message in its history, and `unfolded()` converts it back to the messages of
the loop. Pure: events go in, events come out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from cc_types import JsonValue

from ..api.message import Answer, Event
from .cli_tools import CLAUDE_CODE_SERVER, mcp_name
from .conversation import Block, Message

__all__ = ["LoopAnswer", "unfolded", "unfolded_messages"]

Waits: TypeAlias = Callable[[str, str, dict[str, Any]], bool]

# The ids of calls that the API itself made at an MCP server. These stay unchanged.
_OF_THE_API = "mcptoolu_"

# The field of a text block with the original block that it replaces.
_ORIGINAL = "claude_code_block"


class LoopAnswer:
    """The one message of a loop, built from events and tool results.

    Args:
        server_name: The MCP server of the caller's tools.
        own: The caller's tools that the CLI calls, from the CLI's names to the caller's.
        others: The caller's tools whose calls end the answer, likewise.
        waits: True if a call of the CLI's own tools also ends the answer; takes its id, the tool's name, and the input.
    """

    def __init__(
        self, server_name: str, own: Mapping[str, str], others: Mapping[str, str], waits: Waits | None = None
    ) -> None:
        self.told = Answer()
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
        """True if the message has ended; later output of the CLI is ignored."""
        return self.told.is_complete

    @property
    def calls_others(self) -> bool:
        """True if the message ends in calls that the CLI does not make, and waits for."""
        return self.told.is_complete and self.told.calls_tools

    @property
    def is_within_answer(self) -> bool:
        """True if an answer of the API has begun and not ended."""
        return bool(self._steps) and not self._steps[-1].has_ended

    @property
    def has_stopped_early(self) -> bool:
        """True if the API's last message ended without a reason, as the CLI ends a truncated one."""
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
                return self._tell_or_hold(step, {**event, "index": step.indices[event["index"]]})
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
        """Process results of tools that the CLI has run; return the events for the caller."""
        if not self._steps or self.is_complete:
            return []
        events: list[Event] = []
        for result in results:
            call_id = str(result["tool_use_id"])
            self._steps[-1].answered.add(call_id)
            self._unanswered.discard(call_id)
            events += self._tell_block(_as_mcp_result(result))
        if self._waits_for_results and not self._unanswered:
            events += self._finish(self._steps[-1])
        return events

    def _begin_block(self, step: "_Step", event: Event) -> list[Event]:
        step.indices[event["index"]] = self._next_index
        self._next_index += 1
        block = event["content_block"]
        told = {**event, "index": step.indices[event["index"]]}
        if block["type"] != "tool_use":
            return self._emit(told)
        if self._waits is not None and block["name"] not in self._own and block["name"] not in self._others:
            # Its form depends on its input, which comes later.
            step.held = [told]
            return []
        return self._emit({**told, "content_block": self._as_told(block)})

    def _tell_or_hold(self, step: "_Step", event: Event) -> list[Event]:
        if not step.held:
            return self._emit(event)
        step.held.append(event)
        return []

    def _decide(self, step: "_Step", index: int) -> list[Event]:
        """Release the held events, now that the call is complete."""
        if not step.held or self._waits is None:
            return []
        (start, *rest), step.held = step.held, []
        call = step.answer.block(index)
        if self._waits(call["id"], call["name"], call["input"]):
            step.waiting.add(call["id"])
        else:
            start = {**start, "content_block": self._as_told(start["content_block"])}
        return [told for event in (start, *rest) for told in self._emit(event)]

    def _as_told(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return a call as the caller knows it: its own tools by name, the CLI's as tools of another server."""
        name = call["name"]
        if name in self._others:
            return {**call, "name": self._others[name]}
        server, tool = (self.server_name, self._own[name]) if name in self._own else _server_and_tool(name)
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

    def _tell_block(self, block: dict[str, Any]) -> list[Event]:
        index = self._next_index
        self._next_index += 1
        start: Event = {"type": "content_block_start", "index": index, "content_block": block}
        return self._emit(start) + self._emit({"type": "content_block_stop", "index": index})

    def _emit(self, event: Event) -> list[Event]:
        self.told.feed(event)
        return [event]


class _Step:
    """One API call of the loop."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.indices: dict[int, int] = {}
        """From the block's index in the API's message to the index in the caller's message."""
        self.has_input: set[int] = set()
        self.end: Event = {}
        self.has_ended = False
        self.answered: set[str] = set()
        self.held: list[Event] = []
        self.waiting: set[str] = set()


def unfolded(message: Message) -> list[Message]:
    """Return the messages of the CLI's loop folded into one model message; the message itself if there are none."""
    if message.role != "assistant" or not any(map(_is_folded, message.content)):
        return [message]
    messages: list[Message] = []
    said: list[Block] = []
    results: list[Block] = []
    for block in message.content:
        if _is_folded(block) and block["type"] == "mcp_tool_result":
            results.append(_as_tool_result(block))
            continue
        if results:
            messages += [Message("assistant", tuple(said)), Message("user", tuple(results))]
            said, results = [], []
        said.append(_as_tool_use(block) if _is_folded(block) else block)
    messages.append(Message("assistant", tuple(said)))
    return [*messages, Message("user", tuple(results))] if results else messages


def unfolded_messages(messages: Sequence[JsonValue]) -> list[JsonValue]:
    """Return a request body's messages with all loops unfolded; other messages are unchanged."""
    result: list[JsonValue] = []
    for message in messages:
        blocks = _answer_blocks(message)
        if any(map(_is_folded, blocks)):
            parts = unfolded(Message("assistant", tuple(blocks)))
            result.extend({"role": part.role, "content": [*part.content]} for part in parts)
        else:
            result.append(message)
    return result


def _answer_blocks(message: JsonValue) -> list[Block]:
    content = message.get("content") if isinstance(message, dict) and message.get("role") == "assistant" else None
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return blocks if isinstance(content, list) and len(blocks) == len(content) else []


def _is_folded(block: Block) -> bool:
    kind = block.get("type")
    name = "id" if kind == "mcp_tool_use" else "tool_use_id"
    return kind in ("mcp_tool_use", "mcp_tool_result") and not str(block.get(name)).startswith(_OF_THE_API)


def _as_tool_use(block: Block) -> Block:
    server, tool = str(block.get("server_name")), str(block.get("name"))
    name = tool if server == CLAUDE_CODE_SERVER else mcp_name(server, tool)
    return {"type": "tool_use", "id": block.get("id"), "name": name, "input": block.get("input")}


def _as_tool_result(block: Block) -> Block:
    content = block.get("content")
    result: Block = {
        "type": "tool_result",
        "tool_use_id": block.get("tool_use_id"),
        "content": [_original(item) for item in content] if isinstance(content, list) else content,
    }
    return {**result, "is_error": True} if block.get("is_error") else result


def _as_mcp_result(result: Block) -> dict[str, Any]:
    content = result.get("content") or []
    return {
        "type": "mcp_tool_result",
        "tool_use_id": result["tool_use_id"],
        "is_error": result.get("is_error") is True,
        "content": [_as_text(item) for item in content] if isinstance(content, list) else content,
    }


def _as_text(item: JsonValue) -> JsonValue:
    """Return a result block as text, the only type that clients expect there; other blocks go along with it."""
    if not isinstance(item, dict) or item.get("type") == "text":
        return item
    return {"type": "text", "text": f"[{item.get('type')}]", _ORIGINAL: item}


def _original(item: JsonValue) -> JsonValue:
    if not isinstance(item, dict):
        return item
    # Clients write out all optional fields of a text block.
    return item.get(_ORIGINAL) or {name: value for name, value in item.items() if value is not None}


def _server_and_tool(name: str) -> tuple[str, str]:
    if name.startswith("mcp__"):
        server, found, tool = name.removeprefix("mcp__").partition("__")
        if found:
            return server, tool
    return CLAUDE_CODE_SERVER, name


def _total(usages: Sequence[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return the usage of a whole loop: the sum, and the usage of each API call."""
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
