"""One rule of a policy: the calls that it matches, and its decision."""

import inspect
import os
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeAlias

__all__ = [
    "Behavior", "Predicate", "Rule", "checked_tool_pattern", "is_known_tool", "reading", "shell_rules",
    "tool_name_of", "writing_below",
]  # fmt: skip

# Tools of CLI 2.1.71 to 2.1.330. A newer CLI may have others.
_KNOWN = (
    "Agent", "AskUserQuestion", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterPlanMode",
    "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep", "LSP", "ListAgents", "ListMcpResourcesTool",
    "Monitor", "NotebookEdit", "PowerShell", "Read", "ReadMcpResourceDirTool", "ReadMcpResourceTool", "ReportFindings",
    "ScheduleWakeup", "SendMessage", "SendUserMessage", "SetGoal", "Skill", "TaskCreate", "TaskGet", "TaskList",
    "TaskOutput", "TaskStop", "TaskUpdate", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write",
)  # fmt: skip
_BY_LOWER_CASE = {name.lower(): name for name in _KNOWN}

# Old names of renamed tools, which the CLI still accepts in its own rules.
_RENAMED: Mapping[str, str] = {
    "Task": "Agent", "KillShell": "TaskStop", "KillBash": "TaskStop", "ListPeers": "ListAgents",
    "Brief": "SendUserMessage", "ListMcpResources": "ListMcpResourcesTool", "ReadMcpResource": "ReadMcpResourceTool",
    "ReadMcpResourceDir": "ReadMcpResourceDirTool", "ProposeGoal": "SetGoal",
}  # fmt: skip

_NAME = re.compile(r"[A-Za-z0-9_*-]+")


def checked_tool_pattern(tool: str | re.Pattern[str]) -> str | re.Pattern[str]:
    """Return the pattern in the form that CLI calls can match."""
    if isinstance(tool, re.Pattern):
        return tool
    if not _NAME.fullmatch(tool):
        raise ValueError(
            f"{tool!r} is no tool's name. A name can have a * in it; a regular expression is given compiled, "
            "with re.compile(); and a condition on a command or a path as when=…"
        )
    known = _BY_LOWER_CASE.get(tool.lower(), tool)
    if known != tool:
        raise ValueError(f"{tool!r} would match no call: the tool is called {known!r}")
    return _RENAMED.get(tool, tool)


def is_known_tool(name: str) -> bool:
    """Return True if some CLI has its own tool of this name; MCP tools and names with `*` count as known.

    Raises:
        ValueError: The unknown name is close to a known one: a misspelling.
    """
    if name in _KNOWN or name in _RENAMED or name.startswith("mcp__") or "*" in name:
        return True
    if near := get_close_matches(name, [*_KNOWN, *_RENAMED], n=1, cutoff=0.7):
        raise ValueError(f"{name!r} is not a tool of Claude Code: did you mean {near[0]!r}?")
    return False


def tool_name_of(call: Mapping[str, Any]) -> str:
    """Return the name that rules use for the tool of a hook's input.

    The model can see an MCP tool without its server's name, perhaps under the name of another tool.
    """
    name = str(call.get("tool_name", ""))
    match call.get("mcp_server"):
        case {"name": str(server)}:
            prefix = f"mcp__{re.sub('[^A-Za-z0-9_-]', '_', server)}__"
            return name if name.startswith(prefix) else prefix + name
        case _:
            return _RENAMED.get(name, name)


Behavior: TypeAlias = Literal["allow", "ask", "deny"]
"""Decision of a rule on the calls that it matches."""
Predicate: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Condition on the input of a call. Not a coroutine function."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Decision on some tool calls.

    ```python
    Rule("Bash", "deny", when=lambda input: input.get("run_in_background"))
    Rule("mcp__github__*", "ask")
    Rule(re.compile("Edit|Write|NotebookEdit"), "allow")
    ```

    Raises:
        ValueError: The tool is no name, such as `Bash(git *)`, a rule of the CLI; or differs from a CLI tool only in
            case.
        TypeError: The predicate is a coroutine function.
    """

    tool: str | re.Pattern[str]
    """Name, in which `*` matches any characters; or a regular expression for the whole name. A tool of an MCP server is
    `mcp__server__tool`, whatever name the model sees."""
    behavior: Behavior
    """Decision: deny, ask the policy's callback, or allow."""
    _: KW_ONLY
    when: Predicate | None = None
    """Condition on the input: the rule matches if it returns a true value. If it raises, the call is denied, whatever
    `behavior` is. The CLI first makes a relative path in a file tool's input absolute."""
    reason: str | None = None
    """Text for the model on a denial, or for the asked callback."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tool", checked_tool_pattern(self.tool))
        if self.behavior not in ("allow", "ask", "deny"):
            raise ValueError(f"a rule can 'allow', 'ask' or 'deny', not {self.behavior!r}")
        if inspect.iscoroutinefunction(self.when):
            raise TypeError(f"the predicate of a rule is no coroutine function: {self.when!r}")

    def matches(self, tool: str, input: Mapping[str, Any]) -> bool:
        """Return True if the rule matches this call. Predicate errors propagate."""
        if isinstance(self.tool, str):
            if not re.fullmatch(".*".join(map(re.escape, self.tool.split("*"))), tool, re.DOTALL):
                return False
        elif not self.tool.fullmatch(tool):
            return False
        if self.when is None:
            return True
        answer = self.when(input)
        if inspect.isawaitable(answer):
            raise TypeError("the predicate of a rule returned something to be awaited")
        return bool(answer)


# Tools that read, or keep notes in memory. Not tools that fetch from the network, which can also send data out; nor
# sub-agents and skills, whose definitions can bring more than tool calls.
_READING = ("Glob", "Grep", "LS", "NotebookRead", "Read", "StructuredOutput", "TodoWrite", "ToolSearch")

# Tools that run commands, each differently.
_SHELLS = ("Bash", "Monitor", "PowerShell")

# Each with the field of its path.
_WRITING: Mapping[str, str] = {
    "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path", "Write": "file_path",
}  # fmt: skip

# White space that JavaScript, and so the CLI, trims at an end. Python has more, and lacks one.
_TRIMMED = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\ufeff"

# Files there make other programs run code: Git its hooks, the CLI the hooks of its settings.
_NOT_EVEN_BELOW = frozenset({".git", ".claude"})


def reading() -> list[Rule]:
    """Return the rules that allow to read and search files."""
    return [Rule(tool, "allow") for tool in _READING]


def writing_below(path: str | Path) -> list[Rule]:
    """Return the rules that allow to write below a folder."""
    folder = _folder(path)
    return [Rule(tool, "allow", when=_may_write(folder, field)) for tool, field in _WRITING.items()]


def shell_rules(behavior: Behavior) -> list[Rule]:
    """Return the rules for shell commands."""
    reason = "A shell command can write anywhere." if behavior == "ask" else None
    return [Rule(re.compile("|".join(_SHELLS)), behavior, reason=reason)]


def _may_write(folder: Path, field: str) -> Predicate:
    def predicate(input: Mapping[str, Any]) -> bool:
        below = _below(folder, input[field])
        return below is not None and not _NOT_EVEN_BELOW.intersection(part.lower() for part in below.parts)

    return predicate


def _folder(path: str | Path) -> Path:
    folder = Path(path).resolve(strict=True)
    if not folder.is_dir():
        raise NotADirectoryError(f"{path} is no folder")
    return folder


def _below(folder: Path, path: object) -> Path | None:
    """Return a path's target relative to the folder; None if it is outside.

    The CLI resolves `..` before links, the system after; and for some tools it first changes the path's Unicode form.
    The target must be below in all cases.
    """
    if not isinstance(path, str) or not os.path.isabs(path) or path != path.strip(_TRIMMED):
        raise ValueError("the CLI gives absolute paths")
    normal = os.path.normpath(path)
    targets = {Path(os.path.realpath(way)) for way in (path, normal, unicodedata.normalize("NFC", normal))}
    if any(target == folder or not target.is_relative_to(folder) for target in targets):
        return None
    return Path(os.path.realpath(normal)).relative_to(folder)
