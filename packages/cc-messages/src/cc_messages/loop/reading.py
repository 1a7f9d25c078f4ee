"""The reader of a turn in the CLI loop: from the CLI messages to the events of one answer, and the turn's calls."""

import asyncio
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

from cc_session.internals import RENAMED_TOOLS, PooledSession, is_mcp_name, variable
from cc_types import ClaudeCodeError, CLIConnectionError, JsonValue

from ..api.conversation import Block
from ..api.response import Answer, Event, invalid
from ..context import CLICall, LoopEndedError
from ..process.plan import LIMIT_VARIABLE, Reading
from .answer import LoopAnswer
from .calls import HELD, Approvals, ToolServer, TurnCalls
from .request import LoopRequest


class LoopReading(Reading):
    """A loop's one message, built from the CLI messages. The session knows the cost."""

    repeats_refused_calls = True

    def __init__(
        self, answer: Answer, request: LoopRequest, approvals: Approvals | None, session: PooledSession,
        server: ToolServer | None,
    ) -> None:  # fmt: skip
        super().__init__(answer)
        self.calls: TurnCalls = TurnCalls()
        self.approvals = approvals
        self.is_released: asyncio.Event = asyncio.Event() if approvals is None else approvals.is_released
        """Set if the caller's calls get an answer in this turn, too, which nobody reads."""
        self.ended_by: LoopEndedError | None = None
        """The error for a turn that ends without an answer, after its last calls."""
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
    async def go_on(self) -> None:
        if (step := self._loop.last_step) is None or not step.has_ended:
            return
        if not self.is_broken and (told := self._loop.take_step()) is not None:
            try:
                await self.context.tell_step(told)
            except LoopEndedError as error:
                if not error.after_calls or not await self._allow_no_api_call():
                    raise
                self.ended_by = error
        self.calls.allow()
        if not self.is_released.is_set() and self._loop.is_held_up:
            await self._allow_no_api_call()
            self.is_released.set()

    async def _allow_no_api_call(self) -> bool:
        """Prevent the turn's next API call, by a limit of one token; return false if the CLI's own calls need some."""
        if self._loop.calls_api:
            return False
        await self._session.apply({variable(LIMIT_VARIABLE): "1"})
        return True

    async def call(self, call: CLICall) -> Mapping[str, object]:
        """Run a tool that the CLI calls by itself; hold a call whose result comes with the next request."""
        tools = self.context.tools
        if tools is not None and call.name in tools.names and (call.is_of_subagent or not self._loop.is_held(call.id)):
            return await self.context.call(tools, call)
        text = HELD
        if call.is_of_subagent:  # it cannot end the turn
            text = f"Only the main agent can call {call.name}: report to it what the call would be for."
        else:
            await self.is_released.wait()
        return {"content": [{"type": "text", "text": text}], "isError": True}

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
        if self.ended_by is not None:
            return self.ended_by
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
        has_begun = step is not None
        events, step = self._loop.feed(event), self._loop.last_step
        if event["type"] == "message_start" and has_begun:  # no event of the caller's stream has these counts
            self.context.tell_usage(self.answer.billed)
        # The CLI ends a truncated answer without a reason.
        self.is_broken |= bool(step and step.has_ended and not step.answer.is_complete and self.apology is None)
        return events


def _as_block(result: ToolResultBlock) -> Block:
    content = cast(JsonValue, result.content)
    block: Block = {"type": "tool_result", "tool_use_id": result.tool_use_id, "content": content}
    return {**block, "is_error": True} if result.is_error else block
