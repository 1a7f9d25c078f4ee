"""Calls to Claude Code tools that wait for an approval, as the agent's deferred approvals.

Only the CLI knows all tools, also of MCP servers. The agent learns a tool name in advance from the options, or else
from a call that waits: the response marks the call, and the toolset lists the tools in marked calls, also for a later
run with that history.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import AgentDepsT, ToolDefinition
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset
from pydantic_core import SchemaValidator, core_schema

from cc_messages import APPROVED, ClaudeCodeTools
from cc_session import Policy

# A key in a call's `provider_details` and in a tool's `metadata`.
_MARK = "claude_code_approval"
# The CLI checks the arguments.
_ANY = SchemaValidator(core_schema.any_schema())


@dataclass
class ClaudeCodeToolApprovals(WrapperToolset[AgentDepsT]):
    """The agent toolset, and Claude Code tools whose calls may wait: names alone, without a description."""

    names: Sequence[str]
    """Tool names from the options."""

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """Return the tools; each call to a Claude Code tool needs an approval."""
        marked = [call.tool_name for call in _last_calls(ctx.messages) if _is_marked(call)]
        return {**{name: self._tool(name) for name in (*self.names, *marked)}, **await super().get_tools(ctx)}

    def _tool(self, name: str) -> ToolsetTool[AgentDepsT]:
        definition = ToolDefinition(
            name=name, parameters_json_schema={"type": "object"}, kind="unapproved", metadata={_MARK: True}
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=0, args_validator=_ANY)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        """Return the tool result: for an approved call to a Claude Code tool, the message to the model."""
        return APPROVED if _is_claude_code_tool(tool.tool_def) else await super().call_tool(name, tool_args, ctx, tool)


def tool_names(claude_code_tools: ClaudeCodeTools) -> list[str]:
    """Return the tool names in the options; patterns for names are left out."""
    rules = () if claude_code_tools.policy is None else claude_code_tools.policy.rules
    rule_tools = [rule.tool for rule in rules if rule.behavior == "ask" and isinstance(rule.tool, str)]
    return [name for name in (*claude_code_tools.names, *rule_tools) if "*" not in name]


async def with_waiting_calls(ctx: RunContext[AgentDepsT], response: ModelResponse, policy: Policy) -> ModelResponse:
    """Return the response with waiting calls marked, and add their tools to the current step."""
    manager = ctx.tool_manager
    if manager is None or manager.tools is None:
        return response
    tools = manager.tools

    def waits(part: ModelResponsePart) -> bool:
        if not isinstance(part, ToolCallPart):
            return False
        if part.tool_name in tools and not _is_claude_code_tool(tools[part.tool_name].tool_def):
            return False
        return policy.verdict(part.tool_name, part.args_as_dict()).behavior == "ask"

    response = replace(response, parts=[_marked(part) if waits(part) else part for part in response.parts])
    new_names = {call.tool_name for call in response.tool_calls if _is_marked(call)}.difference(tools)
    if new_names:
        # pydantic-ai lists a step's tools before the request.
        listed = await manager.toolset.get_tools(replace(ctx, messages=[*ctx.messages, response]))
        tools.update({name: listed[name] for name in new_names})
    return response


def without_claude_code_tools(parameters: ModelRequestParameters) -> ModelRequestParameters:
    """Return the parameters without the tools that the CLI itself describes to the model."""
    tools = [tool for tool in parameters.function_tools if not _is_claude_code_tool(tool)]
    return replace(parameters, function_tools=tools)


def _marked(part: ModelResponsePart) -> ModelResponsePart:
    return replace(part, provider_details={**(part.provider_details or {}), _MARK: True})


def _is_marked(call: ToolCallPart) -> bool:
    return bool(call.provider_details and call.provider_details.get(_MARK))


def _last_calls(messages: list[ModelMessage]) -> list[ToolCallPart]:
    """Return the calls in the last response: only they can be open."""
    responses = (message for message in reversed(messages) if isinstance(message, ModelResponse))
    return next((response.tool_calls for response in responses), list[ToolCallPart]())


def _is_claude_code_tool(tool: ToolDefinition) -> bool:
    return bool(tool.metadata and tool.metadata.get(_MARK))
