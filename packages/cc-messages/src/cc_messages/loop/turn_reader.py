"""Parsing of a turn in which the CLI calls tools by itself and asks the API again, any number of times."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

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
from cc_types import ClaudeCodeError, JsonValue

from ..api.conversation import Block
from ..api.failure import invalid
from ..api.message import Answer, Event
from ..process.turn_reader import Reading
from .answer import LoopAnswer
from .approvals import Approvals
from .request import LoopRequest
from .tool_server import ToolServer, TurnCalls

__all__ = ["LoopReading"]


class LoopReading(Reading):
    """A loop's one message, built from the CLI's messages. The session knows the cost."""

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
        # Allowed tool names unknown to tested CLIs.
        self._uncertain = frozenset[str]() if own_tools is None else own_tools.unknown_names
        self._missing = frozenset[str]()
        own = frozenset[str]() if context.tools is None else context.tools.names
        names = {} if key is None else {key.cli_name(name): name for name in key.names()}
        self._loop = LoopAnswer(
            answer,
            "" if key is None else key.name,
            {cli_name: name for cli_name, name in names.items() if name in own},
            {cli_name: name for cli_name, name in names.items() if name not in own},
            None if approvals is None else approvals.waits,
        )

    @property
    @override
    def has_run_tools(self) -> bool:
        return self._server is not None and self._server.has_run

    @override
    def with_cost(self, result: ResultMessage) -> ResultMessage:
        # The CLI reports the process's cost over all requests.
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
                return self._loop.feed_results(results)
            case SystemMessage(subtype="init", data=data) if self._uncertain:
                self._missing = self._uncertain - {*data.get("tools", [])}
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
        """Ids of failed calls to the server's tools, for any reason."""
        blocks = self.answer.content
        failed = frozenset(str(block["tool_use_id"]) for block in blocks if block.get("is_error"))
        name = self._loop.server_name
        calls = [block for block in blocks if block["type"] == "mcp_tool_use" and block.get("server_name") == name]
        return failed & {str(call["id"]) for call in calls}

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
