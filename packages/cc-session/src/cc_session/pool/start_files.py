"""Files that a process reads only at its start: after a change, a launch needs another process.

Which files Claude Code reads, and that a warm process keeps what it has read, is measured on CLI 2.1.332. Files that a
`CLAUDE.md` imports are not followed.
"""

import glob
import os
import stat
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions

from ..process.login import config_folder

# In a working folder, and in each folder above it.
_IN_PROJECT = ("CLAUDE.md", "CLAUDE.local.md", ".mcp.json")
# In the folders `.claude`, in the user's configuration, and in a plugin.
_IN_CONFIGURATION = (
    "CLAUDE.md", "settings.json", "settings.local.json", ".mcp.json", ".claude-plugin/plugin.json", "hooks/hooks.json",
    "plugins/installed_plugins.json", "skills/*/SKILL.md", "output-styles/*.md", "agents/*.md", "agents/*/*.md",
    "commands/*.md", "commands/*/*.md", "rules/*.md", "rules/*/*.md",
)  # fmt: skip


def start_files(options: ClaudeAgentOptions) -> Hashable:
    """Return the state of all files that a process with these options reads at its start."""
    return tuple(map(file_state, chain(_named(options), _found(options))))


def file_state(path: str | Path) -> Hashable:
    """Return what changes when a file does, and None if there is none; for a folder, which programs write to, too."""
    with suppress(OSError, ValueError):
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode):
            return str(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    return None


def _named(options: ClaudeAgentOptions) -> Iterator[Path]:
    """Yield the paths in the options; other texts among them name no file."""
    prompt, folder = options.system_prompt, Path(options.cwd or "")
    if isinstance(prompt, Mapping) and "path" in prompt:
        yield folder / str(prompt["path"])
    for value in (options.settings, options.mcp_servers, *options.extra_args.values()):
        if isinstance(value, (str, Path)) and not str(value).lstrip().startswith("{"):  # else JSON text
            yield folder / value


def _found(options: ClaudeAgentOptions) -> Iterator[str]:
    """Yield the files in the folders that Claude Code searches."""
    sources = ("user", "project", "local") if options.setting_sources is None else options.setting_sources
    cwd = Path(options.cwd or "")
    places = [(cwd / plugin["path"], _IN_CONFIGURATION) for plugin in options.plugins]
    if "user" in sources:
        places.append((Path(config_folder(options.env)), _IN_CONFIGURATION))
    if options.cwd is not None and {"project", "local"}.intersection(sources):
        for folder in (cwd, *cwd.parents, *map(cwd.joinpath, options.add_dirs)):
            places += [(folder, _IN_PROJECT), (folder / ".claude", _IN_CONFIGURATION)]
    for folder, patterns in places:
        for pattern in patterns:
            yield from sorted(glob.iglob(os.path.join(glob.escape(str(folder)), pattern)))
