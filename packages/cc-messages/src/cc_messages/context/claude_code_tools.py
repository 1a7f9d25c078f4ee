"""Claude Code's own tools that a request may use; by default it has none.

All tools, folders, servers, sub-agents and skills that are not named are denied without asking, unless a policy
requires a question.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from claude_agent_sdk import AgentDefinition

from cc_session import McpServer, Policy, Rule
from cc_session.internals import check_paths, is_known_tool

__all__ = ["ClaudeCodeTools"]

# `Read`, `Bash(git *)`, `mcp__server__tool`, as in the CLI's rules.
_ALLOWED = re.compile(r"(?P<tool>[A-Za-z0-9_*-]+)(?:\(.*\))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClaudeCodeTools:
    """Claude Code's own tools that a request may use.

    Requests share processes if only the folder and the definitions of MCP servers differ, and there are no skills.
    Policies and callbacks are compared by identity.

    Raises:
        ValueError: `tools` has an entry that is not a tool name, or that misspells one.
        CLIConnectionError: `cwd` is not a folder.
    """

    tools: Sequence[str]
    """Allowed tools, written like Claude Code's rules: `"Read"`, `"Bash(git *)"`. All others are denied, unless the
    policy allows them."""
    policy: Policy | None = None
    """Additional policy for every call. Its callbacks run in the request's event loop."""
    defers: bool = False
    """True if a call that the policy asks about ends the answer, like a call to the caller's tools. Its result in a
    later request is then the decision: `cc_messages.APPROVED`, or the reason against it."""
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer], repr=False)
    """MCP servers that the CLI connects to. All their tools are allowed, unless the policy denies them."""
    agents: Mapping[str, AgentDefinition] = field(default_factory=dict[str, AgentDefinition])
    """Sub-agents by name. They add the tool `Agent`."""
    skills: Sequence[str] = ()
    """Skills by name, from `.claude/skills` in the folder or the user's configuration; no other file there is read.
    They add the tool `Skill`."""
    cwd: str | Path | None = None
    """The tools' working folder; the transport's if None."""
    max_turns: int | None = None
    """The most API calls in a request; no limit if None."""

    def __post_init__(self) -> None:
        for option in ("tools", "skills"):
            if isinstance(text := getattr(self, option), str):
                raise ValueError(f"{option} is a sequence of names, not a text: write {option}=[{text!r}]")
        check_paths(self.cwd, None)
        if self.defers and self.policy is None:
            raise ValueError("approvals need a policy that says which calls to ask about")
        for tool in self.tools:
            if _ALLOWED.fullmatch(tool) is None:
                raise ValueError(f"{tool!r} is not a tool: write a name like 'Read', or a rule like 'Bash(git *)'")
            name = tool.partition("(")[0]
            Rule(name, "allow")  # raises if a tool name is misspelled
            is_known_tool(name)
        implied = [name for name, users in (("Agent", self.agents), ("Skill", self.skills)) if users]
        object.__setattr__(self, "tools", (*self.tools, *(name for name in implied if name not in self.names)))

    @property
    def names(self) -> list[str]:
        """Tool names without argument rules."""
        return list(dict.fromkeys(tool.partition("(")[0] for tool in self.tools))

    @property
    def key(self) -> object:
        """Values that a process fixes at its start; the folder belongs to them if there are skills."""
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
        """Names unknown to all tested CLIs; a newer CLI may have them, and lists its tools when a turn begins."""
        return frozenset(name for name in self.names if not is_known_tool(name))
