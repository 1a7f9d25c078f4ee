"""Policies: the tool calls that may run, regardless of permission mode and other permissions.

A policy is a value: rules, a default, and a callback. `policy/gate.py` puts it between the CLI and the tools.
"""

import inspect
import logging
import os
import re
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, cast

from claude_agent_sdk import PermissionResult, SandboxSettings, ToolPermissionContext

from ..identity import owned
from ..limits import checked_seconds
from ..mcp.names import is_mcp_name, mcp_name
from .sandbox import Sandbox

logger = logging.getLogger(__name__)

# Tools in CLI 2.1.71 to 2.1.332. A newer CLI may have others.
_TOOLS = (
    "Agent", "AskUserQuestion", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterPlanMode",
    "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep", "LSP", "ListAgents", "ListMcpResourcesTool",
    "Monitor", "NotebookEdit", "PowerShell", "Read", "ReadMcpResourceDirTool", "ReadMcpResourceTool", "ReportFindings",
    "ScheduleWakeup", "SendMessage", "SendUserMessage", "SetGoal", "Skill", "TaskCreate", "TaskGet", "TaskList",
    "TaskOutput", "TaskStop", "TaskUpdate", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write",
)  # fmt: skip
_BY_LOWER_CASE = {name.lower(): name for name in _TOOLS}

RENAMED_TOOLS: Mapping[str, str] = {
    "Task": "Agent", "KillShell": "TaskStop", "KillBash": "TaskStop", "ListPeers": "ListAgents",
    "Brief": "SendUserMessage", "ListMcpResources": "ListMcpResourcesTool", "ReadMcpResource": "ReadMcpResourceTool",
    "ReadMcpResourceDir": "ReadMcpResourceDirTool", "ProposeGoal": "SetGoal",
}  # fmt: skip
"""Present names by old names, which the CLI still accepts in its rules, and tells in part."""

# Tools of older CLIs, and the CLI tool for a structured answer.
_OTHERS = ("LS", "MultiEdit", "NotebookRead", "StructuredOutput")
_KNOWN = (*_TOOLS, *RENAMED_TOOLS, *_OTHERS)

_NAME = re.compile(r"[A-Za-z0-9_*-]+")


def _checked_tool_pattern(tool: str | re.Pattern[str]) -> str | re.Pattern[str]:
    """Return the pattern, with a tool's present name; raise if it could match no call."""
    if isinstance(tool, re.Pattern):
        return tool
    if not _NAME.fullmatch(tool):
        raise ValueError(
            f"{tool!r} is not a tool name. Use * in a name for any characters, re.compile() for a regular expression, "
            "and when=… for a condition on a command or a path."
        )
    beginning, star, _ = tool.partition("*")
    if star and (is_mcp_name(tool) or "mcp__".startswith(beginning) or any(_matches(tool, name) for name in _KNOWN)):
        return tool
    if star or not (is_known_tool(tool) or tool in _OTHERS):
        raise ValueError(f"Claude Code has no tool {tool!r}; for a newer version's, write re.compile({tool!r})")
    return RENAMED_TOOLS.get(tool, tool)


def _matches(pattern: str, name: str) -> bool:
    """Return true if a tool name matches a name with `*`."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None


def is_known_tool(name: str) -> bool:
    """Return true if some CLI has a built-in tool with this name; true also for MCP tools and names with `*`.

    Raise `ValueError` if the name is close to a tool name, and so probably misspelt.
    """
    if name in _TOOLS or name in RENAMED_TOOLS or is_mcp_name(name) or "*" in name:
        return True
    if similar_name := _BY_LOWER_CASE.get(name.lower()):
        raise ValueError(f"{name!r} would match no call: the tool is called {similar_name!r}")
    if name not in _OTHERS and (matches := get_close_matches(name, _KNOWN, n=1, cutoff=0.7)):
        raise ValueError(f"{name!r} is not a tool of Claude Code: did you mean {matches[0]!r}?")
    return False


def tool_name_of(call: Mapping[str, Any]) -> str:
    """Return the name in rules for the tool in a hook input.

    The model can see an MCP tool without the server name, perhaps under another tool's name.
    """
    name = str(call.get("tool_name", ""))
    match call.get("mcp_server"):
        case {"name": str(server)}:
            prefix = mcp_name(server, "")
            return name if name.startswith(prefix) else prefix + name
        case _:
            return RENAMED_TOOLS.get(name, name)


Behavior: TypeAlias = Literal["allow", "ask", "deny"]
"""Decision on the calls that a rule matches."""
Predicate: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Condition on a call input. Not a coroutine function."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Decision on some tool calls.

    ```python
    Rule("Bash", "deny", when=lambda input: input.get("run_in_background"))
    Rule("mcp__github__*", "ask")
    Rule(re.compile("Edit|Write|NotebookEdit"), "allow")
    ```

    Raises:
        ValueError: The tool is not a name, such as the CLI rule `Bash(git *)`; or no tested CLI has a tool with that
            name. `re.compile()` takes any name.
        TypeError: The predicate is a coroutine function.
    """

    tool: str | re.Pattern[str]
    """Name, in which `*` matches any characters; or a regular expression for the whole name. An MCP server tool is
    `mcp__server__tool`, whatever name the model sees."""
    behavior: Behavior
    """Decision: deny, ask the policy callback, or allow."""
    _: KW_ONLY
    when: Predicate | None = None
    """Condition on the input: the rule matches if it returns a true value. If it raises, the call is denied, whatever
    `behavior` is. It runs in a thread, with the context variables of the turn's caller. The CLI first makes a relative
    path in a file tool input absolute."""
    reason: str | None = None
    """Text for the model on a denial, or for the asked callback."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tool", _checked_tool_pattern(self.tool))
        if self.behavior not in ("allow", "ask", "deny"):
            raise ValueError(f"a rule can 'allow', 'ask' or 'deny', not {self.behavior!r}")
        if inspect.iscoroutinefunction(self.when):
            raise TypeError(f"the predicate of a rule is not a coroutine function: {self.when!r}")

    def matches(self, tool: str, input: Mapping[str, Any]) -> bool:
        """Return true if the rule matches this call. Predicate errors propagate."""
        if isinstance(self.tool, str):
            if not _matches(self.tool, tool):
                return False
        elif not self.tool.fullmatch(tool):
            return False
        if self.when is None:
            return True
        answer = self.when(input)
        if inspect.isawaitable(answer):
            raise TypeError("the predicate of a rule returned an awaitable: use a function without `async`")
        return bool(answer)


Default: TypeAlias = Literal["pass", "allow", "ask", "deny"]
"""Decision on a call that no rule matches. `"pass"` leaves it to the CLI rules."""
Ask: TypeAlias = Callable[[str, dict[str, Any], ToolPermissionContext], Awaitable[PermissionResult] | PermissionResult]
"""Callback that decides on a call, by tool name, input and the CLI context; in the SDK types."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A policy's decision on a call."""

    behavior: Default
    """The decision."""
    reason: str
    """The reason, for the model or the asked callback."""


@dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """Rules for all tool calls in a session, for `Session.open(policy=…)`.

    Among the rules that match a call, deny overrides ask and ask overrides allow, in any order; then comes the default.
    This holds for every call, in every permission mode: for the CLI tools and MCP tools, and by sub-agents. The CLI
    can still deny a call that is allowed here, for example by a deny rule in the settings.

    Args:
        rules: The rules, in any order.
        default: The decision on a call that no rule matches. `"pass"` leaves it to the CLI; then the permission mode
            and the CLI rules decide, and `ask` is called where they ask.
        ask: Callback that decides where a rule, or the CLI, asks. It returns the SDK's `PermissionResultAllow`, perhaps
            with a changed input, or `PermissionResultDeny`. If it raises, returns another value or is late, the call is
            denied, as without a callback. Deny rules also apply to a changed input. Permission updates in the answer
            hold for the session and are written to no file.
        timeout: Seconds that `ask` may take; `Timeouts.permission` if None.
        sandbox: Limits by the operating system for the commands that tools run, in addition to the rules. A session
            does not start on a system without a sandbox.

    Raises:
        ValueError: The default is unknown.
    """

    rules: Sequence[Rule] = ()
    _: KW_ONLY
    default: Default = "pass"
    ask: Ask | None = None
    timeout: float | None = None
    sandbox: Sandbox = False

    def __post_init__(self) -> None:
        if self.default not in ("pass", "allow", "ask", "deny"):
            raise ValueError(f"the default is 'pass', 'allow', 'ask' or 'deny', not {self.default!r}")
        if self.timeout is not None:
            checked_seconds(self.timeout, "policy")
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "sandbox", owned(self.sandbox))
        if not_rules := [rule for rule in self.rules if type(rule) is not Rule]:
            raise TypeError(f"the rules of a policy are a sequence of Rule, not of {type(not_rules[0]).__name__}")

    @classmethod
    def read_only(cls) -> Self:
        """Return a policy for reading and searching files only: no shell, network, MCP tools or sub-agents.

        Any other tool, also in a later CLI, is denied. Add rules with `with_rules()`.
        """
        return cls([Rule(tool, "allow") for tool in _READING], default="deny")

    @classmethod
    def workspace_write(
        cls, path: str | Path, *, shell: Behavior | None = None, ask: Ask | None = None, timeout: float | None = None,
        sandbox: Sandbox = False,
    ) -> Self:  # fmt: skip
        """Return `read_only()` plus writing files only below a folder, but not in `.git` and `.claude` folders there.

        Symbolic links are followed and `..` is resolved before the check.

        Args:
            path: The folder, which must exist.
            shell: The decision on shell commands; if None, they are denied without a sandbox. Without a sandbox no
                folder confines them: if allowed, also after asking, they can write anywhere.
            ask: Callback for shell commands.
            timeout: Seconds that `ask` may take.
            sandbox: As for a policy; with it, commands can write below the folder, too.

        Raises:
            NotADirectoryError: The path is not a folder.
            FileNotFoundError: The path does not exist.
        """
        folder = Path(path).resolve(strict=True)
        if not folder.is_dir():
            raise NotADirectoryError(f"{path} is not a folder")
        writing = [Rule(tool, "allow", when=_may_write(folder, field)) for tool, field in _WRITING.items()]
        is_open = sandbox is False
        shell = shell or ("deny" if is_open else "allow")
        reason = "A shell command can write anywhere." if shell == "ask" and is_open else None
        rules = [*cls.read_only().rules, *writing, Rule(_SHELLS, shell, reason=reason)]
        if not is_open:
            settings = cast("Mapping[str, Any]", {} if sandbox is True else sandbox)
            files = dict(settings.get("filesystem", {}))
            files |= {name: [str(folder), *files.get(name, ())] for name in ("allowWrite", "allowRead")}
            sandbox = cast("SandboxSettings", {**settings, "filesystem": files})
        return cls(rules, default="deny", ask=ask, timeout=timeout, sandbox=sandbox)

    def with_rules(self, *rules: Rule) -> "Policy":
        """Return a policy with more rules."""
        return replace(self, rules=[*self.rules, *rules])

    def verdict(self, tool: str, input: Mapping[str, Any]) -> Verdict:
        """Return the policy decision on a call, without calling `ask`."""
        for behavior in ("deny", "ask", "allow"):
            for rule in self.rules:
                if rule.behavior != behavior:
                    continue
                try:
                    is_match = rule.matches(tool, input)
                except BaseException as error:  # else a condition could end the loop of the CLI processes
                    logger.error("A rule about %s could not be applied", tool, exc_info=error)
                    return Verdict("deny", f"A rule about {tool} could not be applied: {type(error).__name__}.")
                if is_match:
                    return Verdict(behavior, rule.reason or _REASONS[behavior].format(tool=tool))
        return Verdict(self.default, _REASONS[self.default].format(tool=tool))

    def __repr__(self) -> str:
        return f"<Policy with {len(self.rules)} rules, default {self.default}>"


_REASONS: Mapping[str, str] = {
    "deny": "The policy of this session does not allow this use of {tool}.",
    "ask": "The policy of this session requires permission for {tool}.",
    "allow": "The policy of this session allows {tool}.",
    "pass": "The policy of this session has no rule for {tool}.",
}

# Tools that read, or keep notes in memory. Not tools that fetch from the network: they can also send data out. Neither
# sub-agents nor skills: their definitions can bring more than tool calls.
_READING = ("Glob", "Grep", "LS", "NotebookRead", "Read", "StructuredOutput", "TodoWrite", "ToolSearch")

# Tools that run commands.
_SHELLS = re.compile("Bash|Monitor|PowerShell")

# Tools that write, with the field for the path.
_WRITING: Mapping[str, str] = {
    "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path", "Write": "file_path",
}  # fmt: skip

# White space that JavaScript, and so the CLI, trims at an end. Python trims more characters, but not the last.
_TRIMMED = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\ufeff"

# Files there make other programs run code: git hooks, and hooks in the CLI settings.
_NOT_EVEN_BELOW = frozenset({".git", ".claude"})


def _may_write(folder: Path, field: str) -> Predicate:
    def predicate(input: Mapping[str, Any]) -> bool:
        inner_path = _below(folder, input[field])
        return inner_path is not None and not _NOT_EVEN_BELOW.intersection(part.lower() for part in inner_path.parts)

    return predicate


def _below(folder: Path, path: object) -> Path | None:
    """Return a path's target relative to the folder; None if it is outside.

    The CLI resolves `..` before links, the system after; and for some tools it first changes the Unicode form of the
    path. The target must be below in all cases.
    """
    if not isinstance(path, str) or not os.path.isabs(path) or path != path.strip(_TRIMMED):
        raise ValueError(f"not an absolute path, as the CLI sends it: {path!r}")
    normal = os.path.normpath(path)
    targets = {Path(os.path.realpath(way)) for way in (path, normal, unicodedata.normalize("NFC", normal))}
    if any(target == folder or not target.is_relative_to(folder) for target in targets):
        return None
    return Path(os.path.realpath(normal)).relative_to(folder)
