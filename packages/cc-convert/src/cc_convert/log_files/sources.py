"""Find and open log files."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from glob import escape, glob, has_magic
from io import BytesIO, FileIO

from .streams import MAGICS, Blocks, Readable, begins_packed, open_packed

STDIN = "-"
"""The standard input name among the sources."""
ENDINGS = tuple(f"{name}{packed}" for packed in ("", ".gz", ".zst", ".bz2", ".xz") for name in (".jsonl", ".ndjson"))
"""File name endings for logs in a folder."""

_AGENTS = os.path.join(os.sep, "subagents", "workflows")
# A larger log is read in pieces.
_SMALL = 32_768


class LogsNotFoundError(FileNotFoundError):
    """Raised for a missing source, or if no place with logs is known."""


def default_folders() -> list[str]:
    """Return the existing ones among `default_places()`."""
    return [folder for folder in default_places() if os.path.isdir(folder)]


def missing_places() -> list[str]:
    """Return the places that `CLAUDE_CONFIG_DIR` names and that do not exist."""
    named = os.environ.get("CLAUDE_CONFIG_DIR", "").strip(", ")
    return [folder for folder in default_places() if named and not os.path.isdir(folder)]


def default_places() -> list[str]:
    """Return the places for Claude Code's transcripts: in each folder in `CLAUDE_CONFIG_DIR`, or the default folders.

    The latter include the sessions that Claude Desktop runs (Cowork).
    """
    named = [part.strip() for part in os.environ.get("CLAUDE_CONFIG_DIR", "").split(",") if part.strip()]
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    roots = [os.path.expanduser(folder) for folder in named or (os.path.join(config, "claude"), "~/.claude")]
    if not named:
        roots += _desktop_folders(config)
    roots = [root.rstrip(os.sep) or root for root in roots]
    return [root if os.path.basename(root) == "projects" else os.path.join(root, "projects") for root in roots]


def _desktop_folders(config: str) -> list[str]:
    """Return the folders in which Claude Desktop stores its Claude Code sessions."""
    if sys.platform == "win32":
        # A store app has its own folder.
        places = [os.environ.get("APPDATA", ""), "~/AppData/Local/Packages/Claude_*/LocalCache/Roaming"]
    else:
        places = ["~/Library/Application Support" if sys.platform == "darwin" else config]
    sessions = [os.path.join(place, "Claude", "local-agent-mode-sessions", "*", "*") for place in places if place]
    patterns = [os.path.join(place, *levels, "local_*", ".claude") for place in sessions for levels in ((), ("agent",))]
    return [folder for pattern in patterns for folder in sorted(glob(os.path.expanduser(pattern)))]


def find_logs(sources: Iterable[str | os.PathLike[str]] = ()) -> list[str]:
    """Return the selected files, each once, sorted by name.

    Sources are paths, patterns, folders (searched recursively for .jsonl, packed or not), or `-`; by default Claude
    Code transcripts. A missing source, or no transcripts at all, raises `LogsNotFoundError`.
    """
    return list(hosts_of(sources))


def hosts_of(sources: Iterable[str | os.PathLike[str]] = (), hosts: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the same files, each with its machine; empty if unknown.

    `hosts` has the machine that a source was copied from. Without sources, the files are from this machine.
    """
    named, hosts = [os.fspath(source) for source in sources], hosts or {}
    if not named:
        named = default_folders()
        if not named:
            places = ", ".join(default_places())
            raise LogsNotFoundError(
                f"no folder with transcripts, looked for {places}; name one, or set CLAUDE_CONFIG_DIR"
            )
        hosts = dict.fromkeys(named, _this_host())
    files: dict[str, tuple[str, str]] = {}
    for name in named:
        for path, real in _files_of(name):
            files.setdefault(real, (path, hosts.get(name, "")))
    return dict(sorted(files.values()))


def _this_host() -> str:
    import platform  # few commands need it

    return platform.node()


def _files_of(name: str) -> Iterator[tuple[str, str]]:
    """Yield a source's files, each with its distinctive path."""
    path = os.path.expanduser(name)
    if name == STDIN:
        yield name, name
    elif os.path.isdir(path):
        yield from _files_below(path)
    elif os.path.exists(path):
        yield path, os.path.realpath(path)
    elif has_magic(path):
        matches = sorted(glob(path, recursive=True))
        if not matches:
            raise LogsNotFoundError(f"no file matches {name}")
        for match in matches:
            yield from _files_below(match) if os.path.isdir(match) else [(match, os.path.realpath(match))]
    else:
        raise LogsNotFoundError(f"no such file: {name}")


def _files_below(folder: str) -> Iterator[tuple[str, str]]:
    waiting, links, seen = [folder], list[str](), set[str]()
    while waiting or links:
        # A linked folder counts under its own path, if that is below, too.
        at = waiting.pop() if waiting else links.pop()
        # Once per folder, not per file, since it checks every part in a path.
        real = os.path.realpath(at)
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = list(os.scandir(at))
        except FileNotFoundError:
            continue
        except OSError:
            yield at, real  # to be reported as unreadable
            continue
        beside = os.path.join(real, "")
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.is_symlink() and not entry.name.startswith("."):
                if entry.is_dir():
                    links.append(entry.path)
                elif entry.name.endswith(ENDINGS) or not os.path.exists(entry.path):
                    # A link that leads nowhere is reported as unreadable.
                    yield entry.path, os.path.realpath(entry.path)
            elif entry.name.endswith(ENDINGS) and entry.is_file():
                yield entry.path, os.path.realpath(entry.path) if entry.is_symlink() else beside + entry.name


def agent_type_of(path: str) -> str:
    """Return the sub-agent's type that the CLI notes beside its transcript; empty if it notes none."""
    name, ending = os.path.splitext(path)
    if ending != ".jsonl" or not os.path.basename(path).startswith("agent-"):
        return ""
    try:
        with open(f"{name}.meta.json", "rb") as file:
            kind = json.loads(file.read(_SMALL)).get("agentType")
    except (OSError, ValueError, AttributeError, RecursionError):
        return ""
    return kind if isinstance(kind, str) else ""


def workflow_of(path: str) -> str:
    """Return the name of the workflow that an agent transcript belongs to; empty if unknown.

    Claude Code has the transcripts in `SESSION/subagents/workflows/RUN`, and the script in
    `SESSION/workflows/scripts/NAME-RUN.js`.
    """
    folder, run = os.path.split(os.path.dirname(path))
    session, suffix = folder[: -len(_AGENTS)], folder[-len(_AGENTS) :]
    if suffix != _AGENTS:
        return ""
    ending = f"-{run}.js"
    scripts = glob(os.path.join(escape(session), "workflows", "scripts", f"*{escape(ending)}"))
    return os.path.basename(scripts[0]).removesuffix(ending) if scripts else ""


def is_packed(path: str) -> bool:
    """Return true if a file is packed, by the first bytes."""
    with open(path, "rb", buffering=0) as file:
        return begins_packed(file)


def open_log(path: str, offset: int = 0) -> AbstractContextManager[Readable]:
    """Open a log from an offset on; a packed log is unpacked, and allows only offset 0."""
    if path == STDIN:
        # A read returns the available bytes.
        return nullcontext(Blocks(partial(os.read, sys.stdin.fileno())))
    file = FileIO(path)
    try:
        beginning = file.read(_SMALL)
        if beginning.startswith(MAGICS):
            return open_packed(file)
        # Each further call takes as long as reading some kilobytes.
        if len(beginning) < _SMALL and not file.read(1):
            file.close()
            file = BytesIO(beginning)
        file.seek(offset)
    except BaseException:
        file.close()
        raise
    return file
