"""The CLI calls: to the caller's tools, for which a process has an MCP server, and to tools that need an approval.

The CLI learns the tools before a request, and a process serves many requests. So the server belongs to the process, and
the process's current request is bound to it. Calls and messages come from the CLI on different ways, so a call from an
abandoned turn can arrive in a later turn. But a turn's messages have only the ids of its own calls.

The CLI cannot keep a call for next week. So a call to one of Claude Code's own tools that the policy asks about is
reported like a call to the caller's tools, and the turn ends. If it is approved, its result is `APPROVED`; the model
reads that and makes the call again, which then runs. Any process can run it, because the history contains everything
it needs.

Lives on the background loop, and parts of it in loops and servers of others. What those functions may raise, and what a
cancel does there:

| function | runs in | may raise | after a cancel |
| --- | --- | --- | --- |
| `ToolServer._call`, `_list` | a task of mcp's `Server` | nothing | an error as answer, which mcp drops |
| `ToolServer._handler()` | a task of `IPCServer` | nothing | an error as answer |
| `ToolServer._lifespan` | the server task | the server error | records that the server is gone |
| `CLITools.call` | the caller's loop | anything: the tool error, or the request end | the tool is cancelled |
| `RequestContext.on_step` | the caller's loop | anything: the request end | nothing more |
| `Approvals.ask` | the SDK permission callback | `CancelledError` | no answer, which nobody wants |

mcp's server ends, for all later calls, by a cancel that does not come from its own scope.
"""

import asyncio
import json
import math
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from dataclasses import replace
from typing import Any, TypeAlias, cast

from claude_agent_sdk import (
    AssistantMessage,
    Message,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    StreamEvent,
    ToolPermissionContext,
    ToolUseBlock,
)  # fmt: skip
from claude_agent_sdk.types import McpServerConfig
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, Tool

from cc_ipc import IPCSession, ToolSchema, current_call
from cc_ipc.internals import ToolFailure, guarded
from cc_session import McpServerFailedError, Policy
from cc_session.internals import LONGEST_CALL, TOOL_CALL_ID, check_length
from cc_types import JsonValue

from ..api.conversation import Block, HistoryMessage, as_blocks
from ..context import CLICall, ToolServerKey

_Context: TypeAlias = ServerRequestContext[dict[str, Any]]
Run: TypeAlias = Callable[[CLICall], Awaitable[Mapping[str, object]]]
"""Runs a call and returns the result in the MCP form."""

_ENDED = "The request that this call belongs to has ended."
HELD = "The result of this call comes with the next request."
"""The CLI's answer to a call that only the caller answers, if it has to get one."""

# The CLI writes a call's message before it makes the call; another pipe or a busy machine can delay it.
_BEHIND_SECONDS = 5.0

APPROVED = "This call was approved. It has not run yet: make it again, exactly as it was, and it will."
"""The result by which the caller approves a call."""

# The CLI asks about a call at the moment the model makes it.
_VERDICT_SECONDS = 5.0


class TurnCalls:
    """A turn's tool calls by id, including its sub-agents' calls."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        """The step of each call."""
        self._step = 0
        self._steps_allowed = 0
        self._subagents_ids: set[str] = set()
        self._inputs: dict[str, list[str]] = {}
        self._open: dict[int, str] = {}
        self._news = asyncio.Event()

    def note(self, message: Message) -> None:
        """Record the calls in a message."""
        match message:
            case StreamEvent(event={"type": "message_start"}, parent_tool_use_id=None):
                self._step += 1
                return
            case StreamEvent(
                event={
                    "type": "content_block_start",
                    "index": index,
                    "content_block": {"type": "tool_use", "id": str(call)},
                },
                parent_tool_use_id=None,
            ):
                self._open[index], self._inputs[call] = call, []
                return
            case StreamEvent(
                event={"type": "content_block_delta", "index": index, "delta": {"partial_json": str(text)}},
                parent_tool_use_id=None,
            ) if index in self._open:
                self._inputs[self._open[index]].append(text)
                return
            case StreamEvent(event={"type": "content_block_stop", "index": index}, parent_tool_use_id=None) if (
                index in self._open
            ):
                self._ids[self._open.pop(index)] = self._step
            case AssistantMessage(content=blocks):
                ids = {block.id for block in blocks if isinstance(block, ToolUseBlock)}
                self._ids |= dict.fromkeys(ids, self._step)
                self._subagents_ids |= ids if message.parent_tool_use_id is not None else set()
            case _:
                return
        self._news.set()

    async def has(self, call_id: str | None) -> bool:
        """Return true if a call belongs to the turn, or if an old CLI does not send the id; wait for its message."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_BEHIND_SECONDS):
                while call_id is not None and call_id not in self._ids:
                    self._news.clear()
                    await self._news.wait()
        return call_id is None or call_id in self._ids

    def allow(self) -> None:
        """Let the calls of the last message run, which has ended."""
        self._steps_allowed = self._step
        self._news.set()

    async def ready(self, call: CLICall) -> CLICall | None:
        """Return a call as the model made it, when its message has ended and the caller has accepted the step.

        Return None if the call does not belong to the turn.
        """
        if not await self.has(call.id):
            return None
        # An old CLI sends no id.
        is_of_subagent, step = call.id in self._subagents_ids, self._ids.get(call.id or "", self._step)
        while not is_of_subagent and step > self._steps_allowed:
            self._news.clear()
            await self._news.wait()
        arguments = self.exact(call.id, call.arguments)
        return replace(call, arguments=arguments, is_of_subagent=is_of_subagent, step=step)

    def exact(self, call_id: str | None, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Return a call's arguments as the model wrote them; `arguments` as they are if a hook has changed them.

        The CLI parses them with JavaScript, which rounds numbers and drops some keys.
        """
        text = "".join(self._inputs.get(call_id or "", ()))
        try:
            written = cast(JsonValue, json.loads(text))
            is_same = _in_javascript(written) == _in_javascript(arguments)
        except (ValueError, RecursionError):
            return arguments
        return written if is_same and isinstance(written, dict) else arguments


def _in_javascript(value: JsonValue) -> str:
    """Return a value as JavaScript parses and writes it, for a comparison."""
    return json.dumps(_rounded(value), sort_keys=True)


def _rounded(value: JsonValue) -> JsonValue:
    match value:
        case bool():
            return value
        case int() | float():
            with suppress(OverflowError):
                number = float(value)
                return number + 0.0 if math.isfinite(number) else None
            return None
        case str():
            return _without_half_pairs(value)
        case list():
            return [_rounded(item) for item in value]
        case dict():
            return {_without_half_pairs(key): _rounded(item) for key, item in value.items() if key != "__proto__"}
        case _:
            return value


def _without_half_pairs(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class ToolServer:
    """Lists tools and passes their calls on to the bound function."""

    def __init__(self, key: ToolServerKey) -> None:
        self.key = key
        self._config: McpServerConfig | None = None
        self._schemas = key.schemas()
        self._turn: tuple[TurnCalls, Run] | None = None
        self._calls: set[asyncio.Future[CallToolResult | ToolFailure]] = set()
        self._seen_ids: set[str] = set()
        self._answered_ids: set[str] = set()
        self.is_gone: bool = False
        """True if calls no longer arrive, so that the process cannot be used again."""
        self._ipc: IPCSession | None = None

    async def start(self) -> McpServerConfig:
        """Accept calls from the first call on; return the server configuration for the CLI."""
        name = self.key.name
        if self._config is None and self.key.transport == "stdio":
            handlers = {schema["name"]: self._handler(schema["name"]) for schema in self._schemas}
            self._ipc = IPCSession(handlers, self._schemas)
            try:
                # Its sockets would keep the objects in a caller's context.
                await asyncio.create_task(self._ipc.start(), context=Context())
            except OSError as error:
                raise McpServerFailedError({name: f"its files cannot be written: {error}"}) from error
            # The SDK's type lacks the timeout. Without it the CLI ends a call after half an hour of silence.
            config = {**self._ipc.mcp_server_config(), "timeout": LONGEST_CALL}
            self._config = cast("McpServerConfig", config)
        elif self._config is None:
            server = Server[dict[str, Any]](
                name, on_list_tools=self._list, on_call_tool=self._call, lifespan=self._lifespan
            )
            self._config = {"type": "sdk", "name": name, "instance": server}
        return self._config

    async def stop(self) -> None:
        """Cancel running calls, and remove the files of `start()`. Allowed at any time."""
        self.unbind()
        if self._ipc is not None:
            await self._ipc.stop()

    def bind(self, calls: TurnCalls, run: Run) -> None:
        """Send a turn's calls to `run` until `unbind()`."""
        self._turn, self._seen_ids, self._answered_ids = (calls, run), set(), set()

    def unbind(self) -> None:
        """Cancel running calls; the CLI gets an error for each, and for later ones."""
        self._turn = None
        for call in self._calls:
            call.cancel()

    @property
    def has_run(self) -> bool:
        """Return true if a call has arrived since `bind()`."""
        return bool(self._seen_ids)

    def has_answered(self, call_id: str) -> bool:
        """Return true if a call result is from here, or if an old CLI does not send the ids."""
        return call_id in self._answered_ids or "" in self._answered_ids

    async def _answer(self, name: str, arguments: Mapping[str, object], call_id: str | None) -> CallToolResult:
        """Run a call. Always returns a result, whoever cancels the call: an exception could end the server."""
        if self._turn is None:
            return _error(_ENDED)
        calls, run = self._turn
        call = CLICall(call_id, name, cast("dict[str, JsonValue]", dict(arguments)))
        # A tool's `KeyboardInterrupt` belongs to the caller's loop, which has raised it, and would end this loop.
        result = guarded(name, lambda: self._result(calls, run, call), reraise=(GeneratorExit,))
        running = asyncio.ensure_future(result)
        self._calls.add(running)
        try:
            answer = await running
            return _error(str(answer)) if isinstance(answer, ToolFailure) else answer
        except asyncio.CancelledError:
            running.cancel()
            # By the CLI, by the turn end, or by the tool itself: one cancel cannot be told from another that comes
            # at the same time. So it is answered: an exception would end the server, for all later calls.
            return _error("CancelledError: The call was cancelled.")
        finally:
            self._answered_ids.add(call_id or "")
            self._calls.discard(running)

    async def _result(self, calls: TurnCalls, run: Run, call: CLICall) -> CallToolResult:
        if (ready_call := await calls.ready(call)) is None:
            return _error(_ENDED)
        self._seen_ids.add(call.id or "")
        result = CallToolResult.model_validate(dict(await run(ready_call)))
        check_length(result.content)
        return result

    def _handler(self, name: str) -> Callable[[dict[str, object]], Awaitable[dict[str, object]]]:
        async def handle(arguments: dict[str, object]) -> dict[str, object]:
            call = current_call()
            result = await self._answer(name, arguments, call.tool_use_id if call is not None else None)
            return result.model_dump(mode="json", by_alias=True, exclude_none=True)

        return handle

    @asynccontextmanager
    async def _lifespan(self, _server: Server[Any]) -> AsyncGenerator[dict[str, Any]]:
        self.is_gone = False
        try:
            yield {}
        finally:
            self.is_gone = True

    async def _list(self, _context: _Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_mcp_tool(schema) for schema in self._schemas])

    async def _call(self, _context: _Context, params: CallToolRequestParams) -> CallToolResult:
        call_id = cast("Mapping[str, object]", params.meta or {}).get(TOOL_CALL_ID)
        return await self._answer(params.name, params.arguments or {}, str(call_id) if call_id else None)


def _error(message: str) -> CallToolResult:
    return CallToolResult.model_validate({"content": [{"type": "text", "text": message}], "isError": True})


def _mcp_tool(schema: ToolSchema) -> Tool:
    kept = {name: schema.get(name) for name in ("name", "description", "annotations", "_meta")}
    return Tool.model_validate({**kept, "inputSchema": {"type": "object", **schema["input_schema"]}})


class Approvals:
    """A request's calls that `policy` asks about; an approval in the last message is good for one call."""

    def __init__(self, policy: Policy, messages: Iterable[HistoryMessage]) -> None:
        *history, last_message = messages
        blocks = [block for message in history for block in message.content]
        calls = {block.get("id"): block for block in blocks if block["type"] == "tool_use"}
        results = [block for block in last_message.content if block["type"] == "tool_result" and block.get("content")]
        approved = [calls.get(result.get("tool_use_id")) for result in results if _text(result) == APPROVED]
        self._policy = policy
        self._approved = Counter((str(call["name"]), _canonical(call["input"])) for call in approved if call)
        self._verdicts: dict[str, asyncio.Future[bool]] = {}
        self.is_released: asyncio.Event = asyncio.Event()
        """Set if calls that wait for an approval are denied in this turn."""

    def waits(self, call_id: str, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Return true if the model's new call must wait; to be asked once for each call."""
        if self._policy.verdict(tool, arguments).behavior != "ask":
            return False
        key = (tool, _canonical(arguments))
        is_approved = self._approved[key] > 0
        self._approved[key] -= is_approved
        self._verdict(call_id).set_result(is_approved)
        return not is_approved

    async def ask(self, _tool: str, _arguments: Mapping[str, Any], context: ToolPermissionContext) -> PermissionResult:
        """Return the decision about a call that the policy asks about; after the release, if it waits for approval."""
        if context.agent_id is not None:
            return PermissionResultDeny(message="A sub-agent's call cannot wait for an approval.")
        verdict = self._verdict(context.tool_use_id or "")
        try:
            async with asyncio.timeout(_VERDICT_SECONDS):
                is_approved = await asyncio.shield(verdict)
        except TimeoutError:
            return PermissionResultDeny(message="The call's input changed after its approval; approve the new input.")
        if is_approved:
            return PermissionResultAllow()
        await self.is_released.wait()
        return PermissionResultDeny(message=HELD)

    def _verdict(self, call_id: str) -> asyncio.Future[bool]:
        return self._verdicts.setdefault(call_id, asyncio.get_running_loop().create_future())


def _text(result: Block) -> str:
    return "".join(str(part.get("text")) for part in as_blocks(result["content"], "content"))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
