"""Claude Code's own tools, for requests that use them: the launch options, and the permission policy.

By default a process has no tools of its own. This module opens it exactly as far as the caller allows: tools by name,
the folder, MCP servers, sub-agents, skills. Everything not allowed is denied without asking, unless a policy requires a
question.
"""

import os
import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions, PermissionResult, ToolPermissionContext

from cc_session import Ask, McpServer, Policy, Rule
from cc_session.internals import is_known_tool

if TYPE_CHECKING:
    from .approvals import Approvals
    from .cli_tools import RequestContext
    from .turn_calls import TurnCalls

__all__ = ["ClaudeCodeTools", "PermissionAsker", "with_claude_code_tools"]

# `Read`, `Bash(git *)`, `mcp__server__tool`, as the CLI's rules name them.
_ALLOWED = re.compile(r"(?P<tool>[A-Za-z0-9_*-]+)(?:\(.*\))?", re.DOTALL)

# The tools of a CLI run with `--bare`. It silently omits all others there. Measured on CLI 2.1.329.
_IN_BARE_MODE = frozenset({"Bash", "Edit", "Read"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClaudeCodeTools:
    """Claude Code's own tools that a request may use.

    Requests share processes if theirs differ in nothing but the folder and the definitions of MCP servers, as long as
    there are no skills. Policies and callbacks are compared by identity.

    Raises:
        ValueError: An entry of `tools` is not a tool name, or misspells one.
    """

    tools: Sequence[str]
    """Allowed tools, in the form of Claude Code's own rules: `"Read"`, `"Bash(git *)"`. All else is denied, unless the
    policy allows it."""
    policy: Policy | None = None
    """Additional policy for every call. Its callbacks run in the event loop of the request."""
    defers: bool = False
    """True if a call that the policy asks about ends the answer, like a call of one of the caller's tools. Its result
    in a later request is then the decision: `cc_messages.APPROVED`, or why not."""
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer], repr=False)
    """MCP servers that the CLI connects to. All their tools are allowed, unless the policy denies them."""
    agents: Mapping[str, AgentDefinition] = field(default_factory=dict[str, AgentDefinition])
    """Sub-agents by name. They add the tool `Agent`."""
    skills: Sequence[str] = ()
    """Skills by name, from `.claude/skills` of the folder or of the user. Nothing else there is read.
    They add the tool `Skill`."""
    cwd: str | Path | None = None
    """The working folder of the tools; that of the transport if None."""
    max_turns: int | None = None
    """The maximum number of API calls of one request; no limit if None."""

    def __post_init__(self) -> None:
        if isinstance(self.tools, str):
            raise ValueError(f"tools is a sequence of names, not the text {self.tools!r}")
        if self.defers and self.policy is None:
            raise ValueError("approvals need a policy that says which calls to ask about")
        for tool in self.tools:
            if _ALLOWED.fullmatch(tool) is None:
                raise ValueError(f"{tool!r} is no tool: write a name such as 'Read', or a rule such as 'Bash(git *)'")
            name = tool.partition("(")[0]
            Rule(name, "allow")  # which knows how the CLI's tools are written
            is_known_tool(name)
        implied = [name for name, given in (("Agent", self.agents), ("Skill", self.skills)) if given]
        object.__setattr__(self, "tools", (*self.tools, *(name for name in implied if name not in self.names)))

    @property
    def names(self) -> list[str]:
        """The names of the tools, without their argument rules."""
        return list(dict.fromkeys(tool.partition("(")[0] for tool in self.tools))

    @property
    def key(self) -> object:
        """The values that a process fixes at its start. Skills are read in the folder."""
        folder = str(self.cwd) if self.skills else None
        return (
            self.tools,
            self.policy,
            self.defers,
            {*self.mcp_servers},
            self.agents,
            self.skills,
            folder,
            self.max_turns,
        )

    @property
    def unknown_names(self) -> frozenset[str]:
        """Names unknown to all tested CLIs. A newer CLI may have them, and lists its tools when a turn begins."""
        return frozenset(name for name in self.names if not is_known_tool(name))


def with_claude_code_tools(options: ClaudeAgentOptions, claude_code_tools: ClaudeCodeTools) -> ClaudeAgentOptions:
    """Return the options of a sealed process, opened as far as `claude_code_tools` allows."""
    if not _IN_BARE_MODE.issuperset(claude_code_tools.names):
        options = replace(options, extra_args={name: arg for name, arg in options.extra_args.items() if name != "bare"})
    folder = claude_code_tools.cwd or options.cwd
    return replace(
        options,
        tools=[name for name in claude_code_tools.names if not name.startswith("mcp__")],
        allowed_tools=[
            *options.allowed_tools,
            *claude_code_tools.tools,
            *(f"mcp__{name}" for name in claude_code_tools.mcp_servers),
        ],
        max_turns=claude_code_tools.max_turns,
        cwd=None if folder is None else os.path.abspath(folder),
        agents=dict(claude_code_tools.agents) or None,
    )


_ENDED = "the request that the call belongs to has ended"


class PermissionAsker:
    """Asks the caller of the process's current request for permissions."""

    def __init__(self) -> None:
        self._turn: tuple[TurnCalls, RequestContext, Approvals | None] | None = None

    def bind(self, calls: "TurnCalls", context: "RequestContext", approvals: "Approvals | None") -> None:
        """Ask about the calls of a turn in `context`, or by `approvals`, until `unbind()`."""
        self._turn = calls, context, approvals

    def unbind(self) -> None:
        """Deny all later calls."""
        self._turn = None

    def policy(self, claude_code_tools: ClaudeCodeTools) -> Policy | None:
        """The policy of the tools, which asks in the current caller's event loop, or leaves the question to it."""
        policy = claude_code_tools.policy
        if policy is None or (policy.ask is None and not claude_code_tools.defers):
            return policy
        return Policy(policy.rules, default=policy.default, ask=self._ask(policy.ask), timeout=policy.timeout)

    def _ask(self, ask: Ask | None) -> Ask:
        async def answer(tool: str, given: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
            if self._turn is None:
                raise RuntimeError(_ENDED)
            calls, request, approvals = self._turn
            if not await calls.has(context.tool_use_id):
                raise RuntimeError(_ENDED)
            if approvals is not None:
                return await approvals.ask(tool, given, context)
            assert ask is not None  # noqa: S101  # a policy without it asks by `approvals`
            return await request.there(_asked(ask, tool, given, context))

        return answer


async def _asked(ask: Ask, tool: str, given: dict[str, Any], context: ToolPermissionContext) -> PermissionResult:
    answer = ask(tool, given, context)
    return await answer if isinstance(answer, Awaitable) else answer
