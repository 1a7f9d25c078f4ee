"""A request's skills, by name, without the other files in their folders.

Claude Code finds skills in settings folders, and settings include the folder author's hooks, permissions, environment
variables and servers. So it gets the named skills as a plugin: a folder with only links to them.
"""

import json
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from claude_agent_sdk import ClaudeAgentOptions

from ..api.failure import invalid
from ..context.tools import ClaudeCodeTools

__all__ = ["with_skills"]

# The plugin's name; the model may know a skill as `skills:NAME`.
_PLUGIN = "skills"


def with_skills(
    options: ClaudeAgentOptions, own_tools: ClaudeCodeTools, resources: AsyncExitStack
) -> ClaudeAgentOptions:
    """Return options with the skills that `own_tools` allows, linked in a folder that `resources` removes."""
    if not own_tools.skills:
        return options
    # Under the working folder, and in the user's configuration; the first place that has a skill wins.
    config = {**os.environ, **options.env}.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude"
    settings = [config] if options.cwd is None else [Path(options.cwd) / ".claude", config]
    places = [Path(folder) / "skills" for folder in settings]
    skills = {_skill(name, places) for name in own_tools.skills}
    folder = Path(resources.enter_context(TemporaryDirectory(prefix="cc-skills-", ignore_cleanup_errors=True)))
    (folder / ".claude-plugin").mkdir()
    (folder / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": _PLUGIN}), encoding="utf-8")
    (folder / "skills").mkdir()
    for skill in skills:
        (folder / "skills" / skill.name).symlink_to(skill.resolve(), target_is_directory=True)
    names = [name for skill in own_tools.skills for name in (skill, f"{_PLUGIN}:{skill}")]
    return replace(options, plugins=[{"type": "local", "path": str(folder)}], skills=names)


def _skill(name: str, places: Sequence[Path]) -> Path:
    if name in ("", ".", "..") or "/" in name or "\\" in name:
        raise invalid(f"{name!r} cannot be a skill name")
    for place in places:
        if (place / name / "SKILL.md").is_file():
            return place / name
    raise invalid(f"There is no skill {name!r} in {' or '.join(map(str, places))}")
