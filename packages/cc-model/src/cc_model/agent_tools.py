"""Adapter from pydantic-ai toolsets to the tools that the CLI calls in its own loop, as the transport takes them.

The tools run as in pydantic-ai's own loop, by a tool manager, in the request event loop. In an agent run it has the
run's tools, capabilities and retries.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Self, TypeAlias

import anyio
from claude_agent_sdk.types import McpServerConfig
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, Tool
from pydantic_ai import RunContext
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ToolFailedError,
    ToolRetryError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)  # fmt: skip
from pydantic_ai.messages import RetryFeedbackPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.tool_manager import ToolManager
from pydantic_ai.tools import ToolDefinition, ToolDenied
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, WrapperToolset
from typing_extensions import override

from cc_ipc import ToolNotFoundError, TransportType, resolve_transport
from cc_ipc.internals import ToolFailure, guarded
from cc_messages import CLICall, CLITools, LoopEndedError

from .loop_usage import check_call
from .run_context import run_context_for
from .tool_content import as_tool_result, error_result

_Context: TypeAlias = ServerRequestContext[dict[str, Any]]

_NEEDS_APPROVAL = (
    "The tool {name!r} was not run: it needs an answer from outside (an approval, or a result), and Claude Code's own "
    "loop cannot wait for one."
)


# A transport that is busy may cancel calls late.
_CANCEL_SECONDS = 1.0


class AgentTools:
    """An agent's toolsets, and their connection to the CLI, for which they are an MCP server."""

    def __init__(
        self, model: Model, toolsets: Sequence[AbstractToolset[Any]], server_name: str, transport: TransportType,
        max_turns: int | None = None,
    ) -> None:  # fmt: skip
        self._model = model
        self._toolset = CombinedToolset(list(toolsets))
        self._server_name, self._max_turns = server_name, max_turns
        self._transport = resolve_transport(transport)
        self._cli_tools([], _Calls(ToolManager(self._toolset)))  # raises ValueError early for a bad name

    @asynccontextmanager
    async def offered(
        self, function_tools: Sequence[ToolDefinition], run_context: RunContext[Any] | None
    ) -> AsyncGenerator[CLITools]:
        """Yield the tools for a request that offers `function_tools`; only those can be called.

        In an agent run they are the run's, with its capabilities; otherwise they are in the toolsets.
        """
        # Calls to the others end the loop: the agent asks for an approval, or changes what it offers.
        tools = [tool for tool in function_tools if not tool.defer and tool.tool_kind is None]
        context = run_context_for(self._model, run_context)
        run_manager = context.tool_manager
        if run_manager is not None and {tool.name for tool in tools}.issubset(run_manager.tools or ()):
            toolset = _Prepared(run_manager.toolset)
            calls = _Calls(replace(run_manager, toolset=toolset, failed_tools=set(), succeeded_tools=set()))
            async with calls:
                yield self._cli_tools(tools, calls)
            calls.hand_back(run_manager)
            return
        async with self._prepared(context) as manager:
            names = sorted(tool.name for tool in manager.tool_defs)
            for tool in tools:
                if tool.name not in names:
                    raise ToolNotFoundError(name=tool.name, known=names)
            async with _Calls(manager) as calls:
                yield self._cli_tools(tools, calls)

    def mcp_servers(self) -> dict[str, McpServerConfig]:
        """Return the MCP server configuration for the CLI, by server name."""
        if self._transport.transport == "sdk":
            server = Server[dict[str, Any]](self._server_name, on_list_tools=self._on_list, on_call_tool=self._on_call)
            return {self._server_name: {"type": "sdk", "name": self._server_name, "instance": server}}
        return {self._server_name: {"type": "stdio", "command": sys.executable, "args": ["-P", "-m", "cc_ipc_bridge"]}}

    async def _on_list(self, _context: _Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        async with self._prepared(run_context_for(self._model)) as manager:
            return ListToolsResult(tools=[_mcp_tool(tool) for tool in manager.tool_defs])

    async def _on_call(self, _context: _Context, params: CallToolRequestParams) -> CallToolResult:
        # Neither a cancel nor a tool may end mcp's server, which serves later calls, too.
        try:
            async with self._prepared(run_context_for(self._model)) as manager:
                call = CLICall(None, params.name, dict(params.arguments or {}))
                answer = await guarded(params.name, lambda: _run(manager, call), reraise=(GeneratorExit,))
        except asyncio.CancelledError:
            answer = ToolFailure("CancelledError", "The call was cancelled.")
        result = error_result(str(answer)) if isinstance(answer, ToolFailure) else answer
        return CallToolResult.model_validate(result)

    @asynccontextmanager
    async def _prepared(self, context: RunContext[Any]) -> AsyncGenerator[ToolManager[Any]]:
        async with await self._toolset.for_run(context) as toolset:
            prepared = _Prepared(await toolset.for_run_step(context))
            yield await ToolManager(prepared).for_run_step(context)

    def _cli_tools(self, tools: Sequence[ToolDefinition], calls: "_Calls") -> CLITools:
        return CLITools(
            names=frozenset(tool.name for tool in tools),
            call=calls.run,
            server_name=self._server_name,
            transport=self._transport.transport,
            sequential=frozenset(tool.name for tool in tools if tool.sequential or calls.are_sequential),
            max_turns=self._max_turns,
        )


class _Prepared(WrapperToolset[Any]):
    """A toolset that stays as it is for the whole request: a call runs in another task, which must not exit it."""

    @override
    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return self


class _Calls:
    """A request's calls, within the run's limits for tool calls and retries; an API call is a step of the run."""

    def __init__(self, manager: ToolManager[Any]) -> None:
        self._manager = manager
        self._step = 1
        self._stepping = asyncio.Lock()
        self._running: set[asyncio.Task[Any] | None] = set()
        self._has_ended = False

    @property
    def are_sequential(self) -> bool:
        """True if the run makes all calls one after another."""
        return self._manager.get_parallel_execution_mode() == "sequential"

    async def run(self, call: CLICall) -> dict[str, object]:
        """Run a call; raise `LoopEndedError` if it exceeds a limit."""
        if self._has_ended:
            return error_result("The request that this call belongs to has ended.")
        task = asyncio.current_task()
        self._running.add(task)
        try:
            manager = await self._manager_at(call.step)
            if call.is_of_subagent:  # the limit for the agent's own was checked before the first of them
                check_call(manager.ctx, len(self._running) - 1)
            return await _run(manager, call)
        except (UnexpectedModelBehavior, UsageLimitExceeded) as error:
            raise LoopEndedError(message=str(error), reason=error) from error
        finally:
            self._running.discard(task)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Wait for the end of the calls that still run, which have been cancelled, as the agent's loop does."""
        self._has_ended = True
        running = [task for task in self._running if task is not None]
        if not running:
            return
        with anyio.CancelScope(shield=True):  # a scope of the agent's graph would cancel each wait here
            # The transport cancels them. A second cancel would break off what they do at their end.
            await asyncio.wait(running, timeout=_CANCEL_SECONDS)
            for task in running:
                if not task.cancelling():
                    task.cancel()
            await asyncio.wait(running)

    def hand_back(self, run_manager: ToolManager[Any]) -> None:
        """Count the retries so far in the run's tool manager, which runs the calls after the loop."""
        manager = self._manager
        assert manager.ctx is not None and run_manager.ctx is not None  # noqa: S101  # both are prepared
        earlier = manager.ctx.retries
        counts = {name: count for name, count in earlier.items() if name not in manager.succeeded_tools}
        counts |= {name: earlier.get(name, 0) + 1 for name in manager.failed_tools}
        # Tools and hooks may keep the context of their call.
        run_manager.ctx = replace(run_manager.ctx, retries=counts)

    async def _manager_at(self, step: int) -> ToolManager[Any]:
        async with self._stepping:
            if (context := self._manager.ctx) is not None and step > self._step:
                context = replace(context, run_step=context.run_step + step - self._step)
                self._manager, self._step = await self._manager.for_run_step(context), step
            return self._manager


async def _run(manager: ToolManager[Any], call: CLICall) -> dict[str, object]:
    part = ToolCallPart(call.name, dict(call.arguments))
    part = replace(part, tool_call_id=call.id) if call.id is not None else part
    try:
        value = await manager.handle_call(part)
    except ToolRetryError as error:
        return error_result(_words(error.tool_retry))
    except (ApprovalRequired, CallDeferred):
        return error_result(_NEEDS_APPROVAL.format(name=call.name))
    except ToolFailedError as error:
        return error_result(_words(error.tool_failed))
    if isinstance(value, ToolDenied):
        return error_result(value.message)
    return as_tool_result(call.name, value)


def _words(part: RetryFeedbackPart | ToolReturnPart) -> str:
    # MCP marks an error in a separate field.
    return part.model_response_str(wrap_if_error=False) if isinstance(part, ToolReturnPart) else part.model_response()


def _mcp_tool(tool: ToolDefinition) -> Tool:
    return Tool.model_validate(
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.parameters_json_schema,
            "annotations": {"readOnlyHint": not tool.sequential},
        }
    )
