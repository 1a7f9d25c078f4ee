"""In-process MCP server for toolsets, as applications with an SDK client need it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from claude_agent_sdk.types import McpSdkServerConfig
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, Tool
from pydantic_ai.tools import ToolDefinition

from cc_types import JsonValue

__all__ = ["sdk_server"]


def sdk_server(
    name: str,
    list_tools: Callable[[], Awaitable[list[ToolDefinition]]],
    call_tool: Callable[[str, Mapping[str, JsonValue]], Awaitable[dict[str, object]]],
) -> McpSdkServerConfig:
    """Return the server for the SDK's options. It works in the SDK client's event loop."""

    async def on_list(
        _context: ServerRequestContext[dict[str, Any]], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_mcp_tool(tool) for tool in await list_tools()])

    async def on_call(_context: ServerRequestContext[dict[str, Any]], params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult.model_validate(await call_tool(params.name, params.arguments or {}))

    server = Server[dict[str, Any]](name, on_list_tools=on_list, on_call_tool=on_call)
    return {"type": "sdk", "name": name, "instance": server}


def _mcp_tool(tool: ToolDefinition) -> Tool:
    return Tool.model_validate(
        {
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.parameters_json_schema,
            "annotations": {"readOnlyHint": not tool.sequential},
        }
    )
