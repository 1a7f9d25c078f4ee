"""`claude_code()`: makes ids such as `claude-code:sonnet` known to an agent, and opens Claude Code's own tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from claude_agent_sdk import AgentDefinition
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import KnownModelName, Model, ModelResolutionContext
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset

from cc_messages import OwnTools
from cc_session import McpServer, Policy

from .model import ClaudeCodeModel
from .own_tool_approvals import OwnToolApprovals
from .provider import ClaudeCodeProvider
from .settings import ClaudeCodeModelSettings

__all__ = ["ClaudeCode", "claude_code"]

_PREFIX = "claude-code:"


@dataclass
class ClaudeCode(AbstractCapability[AgentDepsT]):
    """Resolves `claude-code:NAME`, where NAME is a model id or an alias, wherever an agent takes a model id."""

    provider: ClaudeCodeProvider | None = None
    """The processes; by default those of all models that were given none."""
    tools: OwnTools | None = None
    """The tools of Claude Code itself that the agent's requests may use; none by default."""
    _models: dict[str, ClaudeCodeModel] = field(default_factory=dict[str, ClaudeCodeModel], init=False, repr=False)

    async def resolve_model_id(
        self, ctx: ModelResolutionContext[AgentDepsT], *, model_id: KnownModelName | str
    ) -> Model | None:
        """The model behind a `claude-code:` id; None leaves other ids to others."""
        if not model_id.startswith(_PREFIX):
            return None
        name = model_id.removeprefix(_PREFIX)
        if name not in self._models:
            self._models[name] = ClaudeCodeModel(name, provider=self.provider)
        return self._models[name]

    def get_model_settings(self) -> ClaudeCodeModelSettings | None:
        """The setting that opens the tools."""
        return None if self.tools is None else ClaudeCodeModelSettings(claude_code_tools=self.tools)

    def get_toolset(self) -> AbstractToolset[AgentDepsT] | None:
        """The tools whose calls may need an approval, as the agent knows them; None if none does."""
        return OwnToolApprovals(self.tools.names) if self.tools is not None and self.tools.defers else None

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: an open pool of processes cannot be written down."""
        return None


def claude_code(
    *,
    provider: ClaudeCodeProvider | None = None,
    tools: Sequence[str] = (),
    policy: Policy | None = None,
    approvals: bool = False,
    mcp_servers: Mapping[str, McpServer] | None = None,
    agents: Mapping[str, AgentDefinition] | None = None,
    skills: Sequence[str] = (),
    cwd: str | Path | None = None,
    max_turns: int | None = None,
) -> ClaudeCode[object]:
    """Return the capability for `Agent("claude-code:sonnet", capabilities=[claude_code()])`.

    Without more than a provider, Claude Code has no tools of its own. What is named here runs in the CLI, also for an
    agent with a `ClaudeCodeModel` of its own; the agent's tools run in the agent all the same. Calls and results stand
    in the response as native tool parts, in order, streamed as they happen, and go along in the history.

    Args:
        provider: The processes; by default those of all models that were given none.
        tools: Tools of Claude Code itself, as in its own rules: `"Read"`, `"Bash(git *)"`. All else is denied.
        policy: What holds beyond that, for every call, and whom to ask.
        approvals: Whether calls that the policy asks about become deferred approvals of the agent: its run ends with
            `DeferredToolRequests`, and a run with the results goes on, in any process. The model makes an approved
            call once more, which takes one more API call, and then it runs.
        mcp_servers: MCP servers for Claude Code to connect to.
        agents: Sub-agents by name. They bring the tool `Agent`.
        skills: Skills by name, of those in `.claude/skills` of `cwd` or of the user. Nothing else there is looked at,
            so neither settings nor hooks come with them.
        cwd: The folder that the tools work in; that of the provider if None.
        max_turns: How many API calls one request may take.

    Raises:
        ValueError: An entry of `tools` is no tool, or something is said of tools and none is named.
    """
    if not (tools or mcp_servers or agents or skills):
        if policy is not None or approvals or cwd is not None or max_turns is not None:
            raise ValueError(
                "policy, approvals, cwd and max_turns are about tools of Claude Code's own: name some with tools=…"
            )
        return ClaudeCode(provider)
    own = OwnTools(
        tools=tuple(tools),
        policy=policy,
        defers=approvals,
        mcp_servers=dict(mcp_servers or {}),
        agents=dict(agents or {}),
        skills=tuple(skills),
        cwd=cwd,
        max_turns=max_turns,
    )
    return ClaudeCode(provider, own)
