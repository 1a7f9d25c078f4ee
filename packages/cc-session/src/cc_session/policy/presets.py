"""The rules of the policies that have a name."""

import os
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .rules import Behavior, Predicate, Rule

__all__ = ["is_below", "reading", "shell_rules", "writing_below"]

# They read, or keep notes in memory. Not the tools that fetch from the network, which can also carry something out; nor
# sub-agents and skills, whose definitions can bring more than tool calls.
_READING = ("Glob", "Grep", "LS", "NotebookRead", "Read", "StructuredOutput", "TodoWrite", "ToolSearch")

# They run commands, each in a way of its own.
_SHELLS = ("Bash", "Monitor", "PowerShell")

# Each with the field that has its path.
_WRITING: Mapping[str, str] = {
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
    "Write": "file_path",
}

# What JavaScript, and so the CLI, takes for white space at an end. Python knows more, and one less.
_TRIMMED = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\ufeff"

# What is written there makes other programs run something: Git its hooks, the CLI those of its settings.
_NOT_EVEN_BELOW = frozenset({".git", ".claude"})


def is_below(path: str | Path, *, field: str = "file_path") -> Predicate:
    """Return a predicate for rules: whether a tool's path is below a folder, and is no link to somewhere else.

    Args:
        path: The folder, which must exist. Where links lead to is looked up now, once.
        field: Where the tool's input has the path: `"notebook_path"` for `NotebookEdit`.

    Raises:
        NotADirectoryError: The path is no folder.
        FileNotFoundError: There is nothing at the path.
    """
    folder = _folder(path)

    def predicate(input: Mapping[str, Any]) -> bool:
        return _below(folder, input[field]) is not None

    return predicate


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
    """Where a path leads to, from the folder on; None if that is elsewhere.

    The CLI resolves `..` before it looks for links, the system after; and of some tools it writes the path in another
    way first. What is below must be so in all ways.
    """
    if not isinstance(path, str) or not os.path.isabs(path) or path != path.strip(_TRIMMED):
        raise ValueError("the CLI gives absolute paths")
    normal = os.path.normpath(path)
    targets = {Path(os.path.realpath(way)) for way in (path, normal, unicodedata.normalize("NFC", normal))}
    if any(target == folder or not target.is_relative_to(folder) for target in targets):
        return None
    return Path(os.path.realpath(normal)).relative_to(folder)
