"""Tools beside those that a request only describes: Claude Code's own, and the caller's that the CLI calls."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

from claude_agent_sdk import AgentDefinition

from cc_ipc import ToolSchema
from cc_session import McpServer, Policy, Questions, Rule
from cc_session.internals import TOOL_META, check_paths, check_server_name, is_known_tool, mcp_name
from cc_types import JsonValue

__all__ = ["CLAUDE_CODE_SERVER", "CLICall", "CLITools", "ClaudeCodeTools", "ToolServerKey"]

CLAUDE_CODE_SERVER = "claude-code"
"""The server name for the CLI's own tools in answers."""

# `Read`, `Bash(git *)`, `mcp__server__tool`, as in the CLI's rules.
_ALLOWED = re.compile(r"(?P<tool>[A-Za-z0-9_*-]+)(?:\(.*\))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClaudeCodeTools:
    """Claude Code's own tools that a request may use; by default it has none.

    All tools, folders, servers, sub-agents and skills that are not named are denied without asking, unless a policy
    requires a question. Requests share processes if only the folder and the definitions of MCP servers differ, and
    there are no skills. Policies and callbacks are compared by identity.

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
    questions: Questions | None = None
    """The answers to questions to the user, in the request's event loop. Without it they are refused."""
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
        policy = self.policy or Policy()
        if "AskUserQuestion" in self.names and not (self.questions or self.defers or policy.ask):
            raise ValueError("nobody could answer the tool 'AskUserQuestion': set questions=Questions(answer)")
        if self.questions and self.defers and policy.verdict("AskUserQuestion", {}).behavior == "ask":
            raise ValueError("a question would wait for an approval, too: allow 'AskUserQuestion' in the policy")
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
        own = (self.tools, self.policy, self.defers, {*self.mcp_servers}, self.agents, self.skills, self.max_turns)
        return (*own, self.questions, str(self.cwd) if self.skills else None)

    @property
    def unknown_names(self) -> frozenset[str]:
        """Names unknown to all tested CLIs; a newer CLI may have them, and lists its tools when a turn begins."""
        return frozenset(name for name in self.names if not is_known_tool(name))


@dataclass(frozen=True, slots=True)
class CLICall:
    """A tool call that the CLI makes by itself."""

    id: str | None
    """The call's id from the model; None if the CLI did not send it."""
    name: str
    """The tool name, as in the request body."""
    arguments: dict[str, JsonValue]
    """The model's arguments, unchecked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CLITools:
    """Tools that the CLI calls in its own loop, without asking the caller.

    Raises:
        ValueError: `server_name` is invalid.
    """

    names: frozenset[str]
    """Their names in the request body."""
    call: Callable[[CLICall], Awaitable[Mapping[str, object]]]
    """Runs a call, in the event loop and the context of `request_context()`, and returns a tool result in MCP's form:
    `{"content": [{"type": "text", "text": …}], "isError": …}`. Its exception becomes the tool's error for the model."""
    server_name: str = "tools"
    """The MCP server that has them in the CLI."""
    transport: Literal["stdio", "sdk"] = "sdk"
    """The route from the CLI to the tools: a bridge process, or its connection to this process."""
    sequential: frozenset[str] = frozenset()
    """Tools that must not run twice at the same time."""

    def __post_init__(self) -> None:
        check_server_name(self.server_name)
        if self.server_name == CLAUDE_CODE_SERVER:
            raise ValueError(
                f"{CLAUDE_CODE_SERVER!r} cannot be the name of an MCP server: answers name Claude Code's own tools so"
            )


@dataclass(frozen=True, slots=True)
class ToolServerKey:
    """Name, transport and tools of an MCP server; two requests with equal keys can use one server."""

    name: str
    transport: Literal["stdio", "sdk"]
    tools: str
    """JSON text: a list of objects with `name`, `description`, `input_schema` and `sequential`."""
    is_plain: bool = False
    """True if the model gets the tools under their own names, not as `mcp__SERVER__TOOL`."""

    def cli_name(self, tool: str) -> str:
        """Return the tool name for the model."""
        return tool if self.is_plain else mcp_name(self.name, tool)

    def schemas(self) -> tuple[ToolSchema, ...]:
        """Return the tools as an MCP server lists them."""
        return _schemas(self.tools)

    def names(self) -> frozenset[str]:
        """Return the tool names."""
        return frozenset(schema["name"] for schema in self.schemas())


# Every request of an agent has the same tools, and needs them several times.
@lru_cache(maxsize=64)
def _schemas(tools: str) -> tuple[ToolSchema, ...]:
    schemas = cast("list[dict[str, JsonValue]]", json.loads(tools))
    for schema in schemas:
        # The CLI runs calls to read-only tools in parallel, and others one after another.
        schema.update(annotations={"readOnlyHint": not schema.pop("sequential")}, _meta=dict(TOOL_META))
    return cast("tuple[ToolSchema, ...]", tuple(schemas))
