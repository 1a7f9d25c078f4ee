"""Capability `claude_code()`: resolves ids such as `claude-code:sonnet`, and enables Claude Code tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from claude_agent_sdk import AgentDefinition
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import KnownModelName, Model, ModelRequestContext, ModelResolutionContext
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset

from cc_messages import ClaudeCodeTools
from cc_session import McpServer, Policy, Questions, Sandbox

from .arguments import PREFIX, check_arguments, check_names
from .model import ClaudeCodeModel, ClaudeCodeModelSettings
from .provider import ClaudeCodeProvider, check_provider
from .tool_approvals import ClaudeCodeToolApprovals, tool_names, with_waiting_calls, without_claude_code_tools


@dataclass
class ClaudeCode(AbstractCapability[AgentDepsT]):
    """Resolves `claude-code:NAME`, where NAME is a model id or an alias, wherever an agent takes a model id."""

    provider: ClaudeCodeProvider | None = None
    """Process pool; by default the pool that all models without a provider share."""
    tools: ClaudeCodeTools | None = None
    """Claude Code tools that the agent requests may use; none by default."""
    _models: dict[str, ClaudeCodeModel] = field(default_factory=dict[str, ClaudeCodeModel], init=False, repr=False)

    def __post_init__(self) -> None:
        check_provider(self.provider)

    async def resolve_model_id(
        self, ctx: ModelResolutionContext[AgentDepsT], *, model_id: KnownModelName | str
    ) -> Model | None:
        """Return the model for a `claude-code:` id; None for all other ids."""
        if not model_id.startswith(PREFIX):
            return None
        name = model_id.removeprefix(PREFIX)
        if name not in self._models:
            self._models[name] = ClaudeCodeModel(name, provider=self.provider)
        return self._models[name]

    def get_model_settings(self) -> ClaudeCodeModelSettings | None:
        """Return the setting that enables the tools."""
        return None if self.tools is None else ClaudeCodeModelSettings(claude_code_tools=self.tools)

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT] | None:
        """Return the toolset with the tools whose calls may need an approval; None if none does."""
        if self.tools is None or not self.tools.defers:
            return None
        return ClaudeCodeToolApprovals(toolset, tool_names(self.tools))

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Return the request without the tools that the CLI itself describes to the model."""
        if self.tools is None or not self.tools.defers:
            return request_context
        parameters = without_claude_code_tools(request_context.model_request_parameters)
        return replace(request_context, model_request_parameters=parameters)

    async def after_model_request(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Return the response with the calls marked that wait for an approval."""
        if self.tools is None or not self.tools.defers or self.tools.policy is None:
            return response
        return await with_waiting_calls(ctx, response, self.tools.policy)

    @classmethod
    def from_spec(
        cls,
        *,
        tools: Sequence[str] = (),
        skills: Sequence[str] = (),
        cwd: str | None = None,
        max_turns: int | None = None,
        sandbox: Sandbox = False,
    ) -> "ClaudeCode[object]":
        """Return the capability for an entry in an agent's YAML or JSON file, with arguments as for `claude_code()`.

        The file needs `Agent.from_file(…, custom_capability_types=[ClaudeCode])`.

        Raises:
            ValueError: As from `claude_code()`.
        """
        return claude_code(tools=tools, skills=skills, cwd=cwd, max_turns=max_turns, sandbox=sandbox)


def claude_code(
    *,
    provider: ClaudeCodeProvider | None = None,
    tools: Sequence[str] = (),
    policy: Policy | None = None,
    approvals: bool = False,
    questions: Questions | None = None,
    mcp_servers: Mapping[str, McpServer] | None = None,
    agents: Mapping[str, AgentDefinition] | None = None,
    skills: Sequence[str] = (),
    cwd: str | Path | None = None,
    max_turns: int | None = None,
    sandbox: Sandbox = False,
) -> ClaudeCode[object]:
    """Return the capability for `Agent("claude-code:sonnet", capabilities=[claude_code()])`.

    With a provider alone, Claude Code has no tools. Tools that are named here run in the CLI, also for an agent with
    its own `ClaudeCodeModel`; the agent tools still run in the agent. Calls and results are native tool parts in the
    response, in order, streamed as they happen, and go along in the history.

    Args:
        provider: Process pool; by default the pool that all models without a provider share.
        tools: Claude Code tools, in the Claude Code rule syntax: `"Read"`, `"Bash(git *)"`. All others are denied,
            also if the policy allows them.
        policy: Further rules for every call, and the callback that approves calls. It runs in the run's event loop,
            which a function that is not a coroutine function blocks; that of `questions` likewise.
        approvals: True if calls that the policy asks about become deferred approvals: the agent run ends with
            `DeferredToolRequests`, and a run with the results continues, in any process. The model then repeats an
            approved call, which takes another API call, and the call runs. For `run_stream()`, name such a tool in
            `tools` or in a rule without `*`: otherwise a text before the call ends the run.
        questions: The answers to questions to the user: Claude's, with `"AskUserQuestion"` in `tools`, and those of MCP
            servers. Without it they are refused. The answer has `timeouts.question` seconds.
        mcp_servers: MCP servers for Claude Code to connect to. A server serves several requests with the same
            definition, and keeps its state between them. The model gets its instructions beside sub-agents, skills, or
            any tool but `"Bash"`, `"Edit"` and `"Read"`.
        agents: Sub-agents by name. They bring the tool `Agent`. They can call the agent's own functions only where
            Claude Code runs the loop (`set_agent_toolsets()`).
        skills: Skills by name, from `.claude/skills` in `cwd` or in the user's folder. Nothing else is read there, so
            neither settings nor hooks come with them.
        cwd: Working directory for the tools; the provider's if None.
        max_turns: Maximum number of API calls for a request.
        sandbox: Limits by the operating system for the commands of tools: True, or the Claude Code sandbox settings. A
            request fails on a system without a sandbox.

    Raises:
        ValueError: An entry in `tools` is not a tool, or asks the user although nobody can answer; `tools` or `skills`
            is a string, `max_turns` is less than 1, an option for tools is set without any tool, or `approvals` without
            a policy.
        TypeError: An argument has another type, such as `max_turns="3"`, or an entry in `tools` or `skills`.
        cc_types.CLIConnectionError: `cwd` is not a folder.
    """
    check_names("tools", tools)
    check_names("skills", skills)
    check_arguments(policy=policy, cwd=cwd, max_turns=max_turns)
    if not (tools or mcp_servers or agents or skills):
        if any((policy, approvals, questions, cwd is not None, max_turns is not None, sandbox is not False)):
            names = "policy, approvals, questions, cwd, max_turns and sandbox"
            raise ValueError(f"{names} need tools of Claude Code: name some with tools=…")
        return ClaudeCode(provider)
    if sandbox is not False:
        policy = replace(policy or Policy(), sandbox=sandbox)
    claude_code_tools = ClaudeCodeTools(
        tools=tools,
        policy=policy,
        defers=approvals,
        questions=questions,
        mcp_servers=dict(mcp_servers or {}),
        agents=dict(agents or {}),
        skills=skills,
        cwd=cwd,
        max_turns=max_turns,
    )
    return ClaudeCode(provider, claude_code_tools)
