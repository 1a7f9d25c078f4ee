"""A request's skills, by name, without the other files in their folders.

Claude Code finds skills in settings folders, and settings include the folder author's hooks, permissions, environment
variables and servers. So it gets the named skills as a plugin: a folder with only links to them.
"""

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions

from ..api.failure import invalid
from ..context.claude_code_tools import ClaudeCodeTools

__all__ = ["PLUGIN", "SkillFolder", "with_skills"]

PLUGIN = "skills"
"""The plugin's name; the model may know a skill as `skills:NAME`."""


class SkillFolder:
    """A plugin with links to skills. It is removed by `close()`, by garbage collection, and at interpreter exit."""

    def __init__(self, names: Sequence[str], places: Sequence[Path]) -> None:
        """Find the skills; the first place that has a skill wins."""
        skills = [_skill(name, places) for name in names]
        self.path = Path(tempfile.mkdtemp(prefix="cc-skills-"))
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        (self.path / ".claude-plugin").mkdir()
        (self.path / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": PLUGIN}), encoding="utf-8")
        (self.path / "skills").mkdir()
        for skill in dict.fromkeys(skills):
            (self.path / "skills" / skill.name).symlink_to(skill.resolve(), target_is_directory=True)

    def close(self) -> None:
        """Remove the folder."""
        self._remove()


def with_skills(
    options: ClaudeAgentOptions, own_tools: ClaudeCodeTools, resources: AsyncExitStack
) -> ClaudeAgentOptions:
    """Return options with the skills that `own_tools` allows, linked in a folder that `resources` removes."""
    if not own_tools.skills:
        return options
    folder = SkillFolder(own_tools.skills, _skill_places(options.cwd, {**os.environ, **options.env}))
    resources.callback(folder.close)
    names = [name for skill in own_tools.skills for name in (skill, f"{PLUGIN}:{skill}")]
    return replace(options, plugins=[{"type": "local", "path": str(folder.path)}], skills=names)


def _skill_places(cwd: str | Path | None, env: Mapping[str, str]) -> list[Path]:
    """Return the possible folders: under the working folder, and in the user's configuration."""
    home = env.get("CLAUDE_CONFIG_DIR")
    config = Path(home) if home else Path.home() / ".claude"
    return [folder / "skills" for folder in ([Path(cwd) / ".claude"] if cwd is not None else []) + [config]]


def _skill(name: str, places: Sequence[Path]) -> Path:
    if name in ("", ".", "..") or "/" in name or "\\" in name:
        raise invalid(f"{name!r} cannot be a skill name")
    for place in places:
        if (place / name / "SKILL.md").is_file():
            return place / name
    raise invalid(f"There is no skill {name!r} in {' or '.join(map(str, places))}")
