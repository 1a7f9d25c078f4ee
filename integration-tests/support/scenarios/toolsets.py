"""Toolsets and capabilities: the framework selects the tools, and Claude Code offers exactly these."""

import sys
from pathlib import Path

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, RunContext, Tool, ToolDefinition
from pydantic_ai.capabilities import Capability, IncludeToolReturnSchemas, PrefixTools, PrepareTools, ToolSearch
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset

from api_script import call, steps

from .scenario import HAIKU, SONNET, Theme

toolsets = Theme("toolsets")

MCP_SERVER = Path(__file__).parent / "mcp_server.py"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def negate(a: int) -> int:
    """Negate a number."""
    return -a


def numbers() -> FunctionToolset[object]:
    return FunctionToolset[object]([add, negate])


@toolsets.scenario(on=(SONNET, HAIKU))
async def prefixed_and_combined(model: AnthropicModel) -> object:
    """MODEL-56"""
    both = CombinedToolset[object]([numbers().prefixed("one"), numbers().prefixed("two")])
    return await Agent(model, toolsets=[both]).run("All.")


@toolsets.scenario()
async def renamed_and_filtered(model: AnthropicModel) -> object:
    """MODEL-56"""
    toolset = numbers().renamed({"plus": "add"}).filtered(lambda ctx, tool: tool.name != "negate")
    return await Agent(model, toolsets=[toolset]).run("All.")


@toolsets.scenario()
async def prepared(model: AnthropicModel) -> object:
    """MODEL-53, MODEL-56"""

    async def shouted(ctx: RunContext[object], tools: list[ToolDefinition]) -> list[ToolDefinition]:
        for tool in tools:
            tool.description = (tool.description or "").upper()
        return tools

    return await Agent(model, toolsets=[numbers().prepared(shouted)]).run("All.")


@toolsets.scenario(steps([call("add", a=1, b=2)], [call("negate", a=3)], "Minus three."))
async def dynamic_for_each_step(model: AnthropicModel) -> object:
    """MODEL-12, MODEL-56: a toolset that is created in each step."""
    agent = Agent(model)

    @agent.toolset
    def by_step(ctx: RunContext[object]) -> AbstractToolset[object]:
        return FunctionToolset[object]([add if ctx.run_step == 1 else negate])

    return await agent.run("First add, then negate.")


@toolsets.scenario(steps([call("learn", word="negate")], [call("negate", a=3)], "Minus three."), on=(SONNET, HAIKU))
async def a_tool_that_is_added_in_mid_run(model: AnthropicModel) -> object:
    """MODEL-12, MODEL-56: the next request offers it."""
    toolset = FunctionToolset[object]()

    @toolset.tool_plain
    def learn(word: str) -> str:
        """Learn a new word."""
        toolset.add_function(negate)
        return f"learned {word}"

    return await Agent(model, toolsets=[toolset]).run("Learn to negate.")


@toolsets.scenario()
async def a_real_mcp_server(model: AnthropicModel) -> object:
    """MODEL-56: texts and errors of a server process over stdio."""
    transport = StdioTransport(sys.executable, [str(MCP_SERVER)], keep_alive=False)
    server = MCPToolset[object](transport, max_retries=3, init_timeout=60)  # 5 seconds are too short on a busy machine
    return await Agent(model, toolsets=[server.prefixed("words")]).run("Use the server.")


@toolsets.scenario()
async def schemas_of_what_is_returned(model: AnthropicModel) -> object:
    """MODEL-53: the framework writes them into the description."""
    return await Agent(model, tools=[add], capabilities=[IncludeToolReturnSchemas[object]()]).run("Add.")


@toolsets.scenario()
async def tools_of_a_capability(model: AnthropicModel) -> object:
    """MODEL-56"""

    async def only_add(ctx: RunContext[object], tools: list[ToolDefinition]) -> list[ToolDefinition]:
        return [tool for tool in tools if tool.name.endswith("add")]

    math = Capability[object](instructions="Use the tools for numbers.", tools=[add, negate])
    return await Agent(model, capabilities=[PrefixTools(math, "math"), PrepareTools(only_add)]).run("Calculate.")


@toolsets.scenario(
    steps([call("search_tools", queries=["negate"])], [call("negate", a=3)], "Minus three."),
    on=(SONNET, HAIKU),
)
async def tools_that_have_to_be_searched_for(model: AnthropicModel) -> object:
    """MODEL-53, MODEL-56"""
    hidden = [Tool(negate, defer_loading=True), Tool(add, defer_loading=True)]
    return await Agent(model, tools=hidden, capabilities=[ToolSearch[object](strategy="keywords")]).run("Negate three.")


@toolsets.scenario(
    steps([call("load_capability", id="math")], [call("negate", a=3)], "Minus three."),
    on=(SONNET, HAIKU),
)
async def a_capability_that_is_loaded_on_demand(model: AnthropicModel) -> object:
    """MODEL-24, MODEL-56"""
    math = Capability[object](
        id="math", description="Calculates.", instructions="Calculate well.", tools=[negate], defer_loading=True
    )
    return await Agent(model, capabilities=[math]).run("Negate three.")
