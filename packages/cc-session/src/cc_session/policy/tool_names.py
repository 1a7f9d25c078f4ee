"""What tools are called, so that a rule that is meant for one does not miss it in silence."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

__all__ = ["checked_tool_pattern", "is_known_tool", "tool_name_of"]

# Those of the CLIs 2.1.71 to 2.1.330. A newer CLI may have others.
_KNOWN = (
    "Agent", "AskUserQuestion", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterPlanMode",
    "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep", "LSP", "ListAgents", "ListMcpResourcesTool",
    "Monitor", "NotebookEdit", "PowerShell", "Read", "ReadMcpResourceDirTool", "ReadMcpResourceTool", "ReportFindings",
    "ScheduleWakeup", "SendMessage", "SendUserMessage", "SetGoal", "Skill", "TaskCreate", "TaskGet", "TaskList",
    "TaskOutput", "TaskStop", "TaskUpdate", "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write",
)  # fmt: skip
_BY_LOWER_CASE = {name.lower(): name for name in _KNOWN}

# Names that the CLI still takes in its own rules, for tools that it has renamed.
_RENAMED: Mapping[str, str] = {
    "Task": "Agent",
    "KillShell": "TaskStop",
    "KillBash": "TaskStop",
    "ListPeers": "ListAgents",
    "Brief": "SendUserMessage",
    "ListMcpResources": "ListMcpResourcesTool",
    "ReadMcpResource": "ReadMcpResourceTool",
    "ReadMcpResourceDir": "ReadMcpResourceDirTool",
    "ProposeGoal": "SetGoal",
}

_NAME = re.compile(r"[A-Za-z0-9_*-]+")


def checked_tool_pattern(tool: str | re.Pattern[str]) -> str | re.Pattern[str]:
    """Return the pattern under which the CLI's calls can match it.

    Raises:
        ValueError: It is neither a name nor a name with `*`, or has another case than a tool of the CLI.
    """
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
    """Whether some CLI has a tool of its own by this name; those of MCP servers and names with `*` count as known.

    Raises:
        ValueError: None has, and the name is close to one, so it is a slip.
    """
    if name in _KNOWN or name in _RENAMED or name.startswith("mcp__") or "*" in name:
        return True
    if near := get_close_matches(name, [*_KNOWN, *_RENAMED], n=1, cutoff=0.7):
        raise ValueError(f"{name!r} is not a tool of Claude Code: did you mean {near[0]!r}?")
    return False


def tool_name_of(call: Mapping[str, Any]) -> str:
    """Return the name under which rules know the tool of a hook's input.

    The model can see an MCP tool under a name without its server, which may be that of another tool.
    """
    name = str(call.get("tool_name", ""))
    match call.get("mcp_server"):
        case {"name": str(server)}:
            prefix = f"mcp__{re.sub('[^A-Za-z0-9_-]', '_', server)}__"
            return name if name.startswith(prefix) else prefix + name
        case _:
            return _RENAMED.get(name, name)
