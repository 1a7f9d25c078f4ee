"""A small MCP server over stdio, on the official library."""

import anyio
import mcp_types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}


async def list_tools(context: object, params: object) -> mcp_types.ListToolsResult:
    tools = [
        mcp_types.Tool(name="shout", description="Say a word loudly.", input_schema=SCHEMA),
        mcp_types.Tool(name="fail", description="Fail.", input_schema={"type": "object"}),
    ]
    return mcp_types.ListToolsResult(tools=tools)


async def call_tool(context: object, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
    if params.name == "fail":
        return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text="It failed.")], is_error=True)
    word = str((params.arguments or {})["word"]).upper()
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text=word)])


async def main() -> None:
    server = Server("words", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
