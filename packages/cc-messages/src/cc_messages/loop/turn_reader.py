"""Parsing of a turn in which the CLI calls tools by itself and asks the API again, any number of times."""

from collections.abc import Mapping, Sequence
from typing import cast

from claude_agent_sdk import AssistantMessage, Message, StreamEvent, SystemMessage, ToolResultBlock, UserMessage
from typing_extensions import override

from cc_types import ClaudeCodeError, JsonValue

from ..api.failure import invalid
from ..api.message import Event
from ..process.turn_reader import Reading
from .answer import LoopAnswer
from .approvals import Approvals
from .cli_tools import ToolServerKey
from .conversation import Block
from .turn_calls import TurnCalls

__all__ = ["LoopReading"]


class LoopReading(Reading):
    """The one message of a loop, built from the CLI's messages.

    Args:
        server: The tools of the request.
        own: The tools that the CLI calls by itself.
        approvals: The calls of the CLI's own tools that wait for an approval.
        doubtful: The names of tools of its own that the CLI may not have.
        calls: Gets the tool calls of the turn.
    """

    def __init__(
        self,
        server: ToolServerKey | None,
        own: frozenset[str],
        approvals: Approvals | None,
        doubtful: frozenset[str],
        calls: TurnCalls,
    ) -> None:
        super().__init__()
        self._calls = calls
        self._doubtful = doubtful
        self._missing = frozenset[str]()
        names = {server.cli_name(name): name for name in server.names()} if server is not None else {}
        self._loop = LoopAnswer(
            server.name if server is not None else "",
            {cli_name: name for cli_name, name in names.items() if name in own},
            {cli_name: name for cli_name, name in names.items() if name not in own},
            approvals.waits if approvals is not None else None,
        )
        self.answer = self._loop.told

    @property
    @override
    def was_blocked(self) -> bool:
        return False  # the limit is the CLI's own here, and a second attempt would not have the history

    @override
    def _feed(self, message: Message) -> Sequence[Event]:
        self._calls.note(message)
        match message:
            case StreamEvent() | AssistantMessage() | UserMessage() if message.parent_tool_use_id is not None:
                return ()  # from a sub-agent
            case UserMessage(content=[*blocks]) if not self.is_broken:
                results = [_as_block(block) for block in blocks if isinstance(block, ToolResultBlock)]
                return self._loop.feed_results(results)
            case SystemMessage(subtype="init", data=data) if self._doubtful:
                self._missing = self._doubtful - {*data.get("tools", [])}
                self.is_broken |= bool(self._missing)
                return ()
            case _:
                return super()._feed(message)

    @override
    def failure(self, address: str) -> ClaudeCodeError:
        if self._missing:
            return invalid(f"Claude Code has no tool {', '.join(sorted(self._missing))}: check the names")
        return super().failure(address)

    @property
    @override
    def ends_by_itself(self) -> bool:
        # Calls that are not the CLI's to make keep it waiting, and after an empty answer it asks again.
        if self._loop.is_complete and (self._loop.calls_others or not self._loop.shows_something_at_last):
            return False
        return super().ends_by_itself

    @property
    def failed_calls(self) -> frozenset[str]:
        """The ids of failed calls of the server's tools, for any reason."""
        blocks = self.answer.content
        failed = {str(block["tool_use_id"]) for block in blocks if block.get("is_error")}
        return frozenset(str(block["id"]) for block in blocks if self._is_of_server(block)) & failed

    def _is_of_server(self, block: Mapping[str, JsonValue]) -> bool:
        return block["type"] == "mcp_tool_use" and block.get("server_name") == self._loop.server_name

    @override
    def _feed_event(self, event: Event) -> Sequence[Event]:
        if event["type"] == "message_start" and (self._loop.is_within_answer or self.has_apology):
            self.is_broken = True  # the CLI repeats events already sent
            return ()
        events = self._loop.feed(event)
        if self._loop.has_stopped_early and not self.has_apology:
            self.is_broken = True
        return events


def _as_block(result: ToolResultBlock) -> Block:
    content = cast(JsonValue, result.content)
    block: Block = {"type": "tool_result", "tool_use_id": result.tool_use_id, "content": content}
    return {**block, "is_error": True} if result.is_error else block
