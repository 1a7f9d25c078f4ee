"""A turn in which the CLI calls tools by itself and asks the API again, as often as the model likes."""

from typing import TYPE_CHECKING, cast

from claude_agent_sdk import AssistantMessage, Message, StreamEvent, ToolResultBlock, UserMessage
from typing_extensions import override

from cc_session import Session

from .answer import Event
from .approvals import Approvals
from .carried import says_nothing
from .conversation import Block, Held
from .conversation import Message as HeldMessage
from .loop_answer import LoopAnswer
from .request import MessagesRequest
from .turn import Turn, is_made_up

if TYPE_CHECKING:
    from cc_types import JsonValue

__all__ = ["LoopTurn"]


class LoopTurn(Turn):
    """The turn that answers a request some of whose tools the CLI calls."""

    def __init__(self, request: MessagesRequest, session: Session, approvals: Approvals | None = None) -> None:
        tools = request.beside.tools if request.beside is not None else None
        own = tools.names if tools is not None else frozenset[str]()
        server = request.launch.tool_server
        names = {server.cli_name(name): name for name in server.names()} if server is not None else {}
        self._loop = LoopAnswer(
            server.name if server is not None else "",
            {cli_name: name for cli_name, name in names.items() if name in own},
            {cli_name: name for cli_name, name in names.items() if name not in own},
            approvals.waits if approvals is not None else None,
        )
        self._last_message_id: str | None = None
        self._uuids: list[str | None] = []
        super().__init__(request, session, self._loop.told)

    @property
    @override
    def ends_by_itself(self) -> bool:
        # Calls that are not the CLI's to make keep it waiting, and after an answer that shows nothing it asks again.
        if self._loop.is_complete and (self._loop.calls_others or not self._says_something_at_last):
            return False
        return super().ends_by_itself

    @property
    @override
    def is_as_left(self) -> bool:
        return super().is_as_left and len(self.outcome()) == 1 + len(self.said)

    @property
    @override
    def said(self) -> list[HeldMessage]:
        return self._loop.said() if self.says_something else []

    @override
    def outcome(self) -> list[Held]:
        held = super().outcome()[:1]
        if held and self.answer.is_complete:
            for message, uuid in zip(self._loop.said(), self._uuids, strict=False):
                held.append(Held(message, uuid or "", is_cut=held[-1].message.answers_tools))
        return held

    @property
    def failed_calls(self) -> frozenset[str]:
        """The ids of the calls of the server's tools that have failed, by whoever's fault."""
        blocks = self.answer.as_history().content
        failed = {str(block["tool_use_id"]) for block in blocks if block.get("is_error")}
        return frozenset(str(block["id"]) for block in blocks if self._is_of_server(block)) & failed

    def _is_of_server(self, block: Block) -> bool:
        return block["type"] == "mcp_tool_use" and block.get("server_name") == self._loop.server_name

    @property
    def _says_something_at_last(self) -> bool:
        return not all(map(says_nothing, self._loop.said()[-1].content))

    @override
    def _take(self, message: Message) -> None:
        match message:
            case StreamEvent() | AssistantMessage() | UserMessage() if message.parent_tool_use_id is not None:
                return  # a subagent's
            case AssistantMessage() if message.error is None and message.message_id != self._last_message_id:
                self._last_message_id = message.message_id
                self._uuids.append(message.uuid)
            case UserMessage(content=list()):
                results = [block for block in message.content if isinstance(block, ToolResultBlock)]
                self._take_results([_as_block(result) for result in results])
                if len(self._uuids) % 2:
                    self._uuids.append(message.uuid)
            case _:
                pass
        super()._take(message)

    @override
    def _take_event(self, event: Event) -> None:
        if self.answer.is_complete or self._is_broken:
            return
        is_start = event["type"] == "message_start"
        if is_start and (self._loop.is_within_answer or self._apology is not None):
            self._break()  # the CLI repeats what was told already
            return
        if self._apology is not None and is_made_up(event):
            return
        self._put(self._loop.feed(event))
        if self._loop.has_stopped_early and self._apology is None:
            self._break()

    def _take_results(self, results: list[Block]) -> None:
        if not self._is_broken:
            self._put(self._loop.feed_results(results))

    def _put(self, events: list[Event]) -> None:
        for event in events:
            self._events.put_nowait(event)


def _as_block(result: ToolResultBlock) -> Block:
    content = cast("JsonValue", result.content)
    block: Block = {"type": "tool_result", "tool_use_id": result.tool_use_id, "content": content}
    return {**block, "is_error": True} if result.is_error else block
