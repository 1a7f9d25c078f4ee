"""Skills of a request, by name, without the rest of their folders.

Claude Code finds skills in its settings folders, and settings include hooks, permissions, environment variables and
servers of the folder's author. So it gets the named skills as a plugin: a folder with only links to them.
"""

import json
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions

from ..api.failure import invalid
from .claude_code_tools import ClaudeCodeTools

__all__ = ["PLUGIN", "SkillFolder", "skill_places", "with_skills"]

PLUGIN = "skills"
"""The plugin's name; the model may know a skill as `skills:NAME`."""


class SkillFolder:
    """A plugin with links to skills. It is removed by `close()`, by garbage collection, and at interpreter exit."""

    def __init__(self, names: Sequence[str], places: Sequence[Path]) -> None:
        """Find the skills; the first place that has one wins."""
        found = [_found(name, places) for name in names]
        self.path = Path(tempfile.mkdtemp(prefix="cc-skills-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        (self.path / ".claude-plugin").mkdir()
        (self.path / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": PLUGIN}), encoding="utf-8")
        (self.path / "skills").mkdir()
        for skill in dict.fromkeys(found):
            (self.path / "skills" / skill.name).symlink_to(skill.resolve(), target_is_directory=True)

    def close(self) -> None:
        """Remove the folder."""
        self._remove()


def skill_places(cwd: str | Path | None, env: Mapping[str, str]) -> list[Path]:
    """Return the possible folders of skills: under the working folder, and the user's configuration."""
    home = env.get("CLAUDE_CONFIG_DIR")
    config = Path(home) if home else Path.home() / ".claude"
    return [folder / "skills" for folder in ([Path(cwd) / ".claude"] if cwd is not None else []) + [config]]


def _found(name: str, places: Sequence[Path]) -> Path:
    if name in ("", ".", "..") or "/" in name or "\\" in name:
        raise invalid(f"{name!r} cannot be the name of a skill")
    for place in places:
        if (place / name / "SKILL.md").is_file():
            return place / name
    raise invalid(f"There is no skill {name!r} in {' or '.join(map(str, places))}")


def with_skills(
    options: ClaudeAgentOptions, claude_code_tools: ClaudeCodeTools, folder: SkillFolder
) -> ClaudeAgentOptions:
    """Return options with the skills of `claude_code_tools`, linked in `folder`."""
    names = [known for name in claude_code_tools.skills for known in (name, f"{PLUGIN}:{name}")]
    return replace(options, plugins=[{"type": "local", "path": str(folder.path)}], skills=names)
