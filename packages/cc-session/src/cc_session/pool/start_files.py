"""Files that a process reads only at its start: after a change, a launch needs another process.

Which files Claude Code reads, and that a warm process keeps what it has read, is measured on CLI 2.1.332. A memory in a
folder that the settings name is not among them.
"""

import glob
import json
import os
import re
import stat
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, project_key_for_directory

from ..process.login import config_file, config_folder

# In a working folder, and in each folder above it.
_IN_PROJECT = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".mcp.json")
# In the folders `.claude`, in the user's configuration, and in a plugin; `**` stands for the texts on all levels.
_IN_CONFIGURATION = (
    "CLAUDE.md", "AGENTS.md", "settings.json", "settings.local.json", ".mcp.json", ".claude-plugin/plugin.json",
    "hooks/hooks.json", "plugins/installed_plugins.json", "skills/*/SKILL.md", "output-styles/*.md", "agents/**",
    "commands/**", "rules/**", "workflows/*",
)  # fmt: skip
# In the user's file, where each process keeps figures beside them: the user's choices for a project.
_CHOICES = (
    "allowedTools", "disabledMcpServers", "disabledMcpjsonServers", "enabledMcpServers", "enabledMcpjsonServers",
    "hasClaudeMdExternalIncludesApproved", "hasTrustDialogAccepted", "mcpContextUris",
)  # fmt: skip
_IMPORT = re.compile(r"(?:^|\s)@([^\s\\]+)")


def start_files(options: ClaudeAgentOptions) -> tuple[Hashable, ...]:
    """Return the state of all files that a process with these options reads at its start."""
    files = chain(_named(options), _with_imports(_found(options)))
    return (*map(file_state, files), _user_choices(options))


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
    sources, cwd, configuration = _sources(options), Path(options.cwd or ""), config_folder(options.env)
    places: list[tuple[Path, tuple[str, ...]]] = []
    places += [(cwd / plugin["path"], _IN_CONFIGURATION) for plugin in options.plugins]
    if "user" in sources:
        places.append((configuration, _IN_CONFIGURATION))
    if options.cwd is not None:
        root, git = _repository(cwd)
        if options.env.get("CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS") != "1":
            places += [(git, ("HEAD",)), (root / ".git", ("refs/remotes/origin/HEAD",))]
        if options.env.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY") != "1":
            places.append((configuration / "projects" / project_key_for_directory(root), ("memory/**",)))
        if {"project", "local"}.intersection(sources):
            for folder in dict.fromkeys((cwd, *cwd.parents, root, *map(cwd.joinpath, options.add_dirs))):
                places += [(folder, _IN_PROJECT), (folder / ".claude", _IN_CONFIGURATION)]
    for folder, patterns in places:
        for pattern in patterns:
            if pattern.endswith("/**"):
                yield from sorted(_texts(folder / pattern.removesuffix("/**")))
            else:
                yield from sorted(glob.iglob(os.path.join(glob.escape(str(folder)), pattern)))


def _texts(root: Path) -> Iterator[str]:
    """Yield the Markdown files in a folder and below; each folder once, since links may form circles."""
    places = set[str]()
    for folder, folders, files in os.walk(root, followlinks=True):
        if (place := os.path.realpath(folder)) in places:
            folders.clear()
            continue
        places.add(place)
        yield from (os.path.join(folder, name) for name in files if name.endswith(".md"))


def _with_imports(files: Iterable[str]) -> Iterator[str]:
    """Yield the files, and those that texts among them import."""
    paths = dict.fromkeys(files)
    queue = deque(paths)
    while queue:
        path = queue.popleft()
        if path.endswith(".md") and (state := file_state(path)) is not None:
            new_paths = [name for name in _imports(path, state) if name not in paths]
            paths |= dict.fromkeys(new_paths)
            queue += new_paths
    yield from paths


@lru_cache(maxsize=1024)
def _imports(path: str, _state: Hashable) -> tuple[str, ...]:
    """Return the paths that a text has behind an `@`, while the state of the file is the same."""
    with suppress(OSError):
        text, folder = Path(path).read_text("utf-8", "replace"), os.path.dirname(path)
        names = [os.path.expanduser(name.partition("#")[0]) for name in _IMPORT.findall(text)]
        return tuple(dict.fromkeys(os.path.normpath(os.path.join(folder, name)) for name in names))
    return ()


def _user_choices(options: ClaudeAgentOptions) -> Hashable:
    """Return MCP servers, and choices about them and others, in the user's file, if a process reads these."""
    sources, file = _sources(options), config_file(options.env)
    if not (sources or options.mcp_servers):
        return None
    root, _ = _repository(Path(options.cwd or ""))
    servers, choices = _choices_in(file, str(root), file_state(file))
    return choices, None if options.strict_mcp_config else tuple(servers.get(name) for name in sources)


@lru_cache(maxsize=16)
def _choices_in(file: Path, root: str, _state: Hashable) -> tuple[Mapping[str, str], str]:
    """Return the servers of the user and of a project, and the project's choices, while the file's state is the same.

    As JSON text. What is empty is left out: a process writes empty choices to the file.
    """
    nothing: Any = {}
    with suppress(AttributeError, OSError, ValueError):
        document = json.loads(file.read_bytes())
        project = document.get("projects", nothing).get(root, nothing)
        servers = {"user": document.get("mcpServers"), "local": project.get("mcpServers")}
        choices = {name: project[name] for name in _CHOICES if project.get(name)}
        return {source: json.dumps(each or nothing) for source, each in servers.items()}, json.dumps(choices)
    return {}, ""


def _sources(options: ClaudeAgentOptions) -> list[str]:
    return ["user", "project", "local"] if options.setting_sources is None else [*options.setting_sources]


def _repository(cwd: Path) -> tuple[Path, Path]:
    """Return the root of a folder's git repository, for a worktree that of the main one, and the folder with `HEAD`."""
    for folder in (cwd, *cwd.parents):
        git = folder / ".git"
        if os.path.isdir(git):
            return folder, git
        with suppress(OSError):  # a file, in a worktree or a submodule
            git = folder / git.read_text("utf-8", "replace").removeprefix("gitdir:").strip()
            return (git.parent.parent.parent if git.parent.name == "worktrees" else folder), git
    return cwd, cwd / ".git"
