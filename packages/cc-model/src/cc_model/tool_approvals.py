"""Toolset of those Claude Code tools whose calls need an approval: known by name, and never run here."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import AgentDepsT, ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, ToolsetTool

from cc_messages import APPROVED, ClaudeCodeTools

__all__ = ["ClaudeCodeToolApprovals", "without_claude_code_tools"]


class ClaudeCodeToolApprovals(ExternalToolset[AgentDepsT]):
    """Toolset with names alone. The CLI describes the tools to the model, and runs approved calls."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__([ToolDefinition(name=name, parameters_json_schema={"type": "object"}) for name in names])

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """Return the tools; each of their calls needs an approval."""
        tools = await super().get_tools(ctx)
        return {name: replace(tool, tool_def=replace(tool.tool_def, kind="unapproved")) for name, tool in tools.items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> str:
        """Return the message to the model about an approved call."""
        return APPROVED


def without_claude_code_tools(
    parameters: ModelRequestParameters, claude_code_tools: ClaudeCodeTools | None
) -> ModelRequestParameters:
    """Return the parameters of a request without the tools that the CLI itself describes to the model."""
    if claude_code_tools is None or not claude_code_tools.defers:
        return parameters
    tools = [tool for tool in parameters.function_tools if tool.name not in claude_code_tools.names]
    return replace(parameters, function_tools=tools)
