"""Path of the CLI to run, and checks of paths before a start."""

import os
import shutil
import sys
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

import claude_agent_sdk

from ..errors import CLIConnectionError, CLINotFoundError

# First bytes of scripts, and of programs for Linux, macOS and Windows, which WSL runs.
_PROGRAM_STARTS = (b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")


def bundled_cli() -> str:
    """Return the path to the CLI in the SDK wheel; a wheel for all platforms has none."""
    name = "claude.exe" if sys.platform == "win32" else "claude"
    return str(Path(claude_agent_sdk.__file__).parent / "_bundled" / name)


def find_cli(path: str | Path | None = None) -> str | None:
    """Return the CLI for sessions: `path`, else the SDK CLI, else `claude` on PATH; None if there is none."""
    if path:
        return str(path)
    bundled = bundled_cli()
    return bundled if Path(bundled).is_file() else shutil.which("claude")


def check_paths(cwd: str | Path | None, cli_path: str | Path | None) -> None:
    """Check paths for a process before its start. The start itself shows if a program is Claude Code's CLI.

    Raises:
        CLINotFoundError: `cli_path` does not exist.
        CLIConnectionError: `cli_path` cannot be executed, or `cwd` is not a folder.
    """
    if cwd == "" or (cwd is not None and not Path(cwd).is_dir()):
        raise CLIConnectionError(reason=f"cwd={str(cwd)!r} is not a folder", advice=_folder_advice(str(cwd)))
    if cli_path is None:
        return
    program = shutil.which(cli_path)
    if program is None and not Path(cli_path).exists():
        raise CLINotFoundError(path=str(cli_path), advice=cli_advice())
    if program is None or not _is_program(program):
        reason = f"cli_path={str(cli_path)!r} is neither an executable binary nor a script that begins with #!"
        raise CLIConnectionError(reason=reason, advice=cli_advice())


def _folder_advice(cwd: str) -> str:
    if not cwd:
        return "Write '.' for this program's own working folder, or leave cwd out."
    folder = Path(os.path.expanduser(cwd)).absolute()
    names = [folder.name] if folder.is_dir() else [path.name for path in folder.parent.glob("*/")]
    if matches := get_close_matches(folder.name, names, n=1):
        return f"Did you mean {str(folder.parent / matches[0])!r}?"
    return "Create the folder, or set cwd to another one."


def _is_program(path: str) -> bool:
    """Return false if the system would certainly refuse to execute a file."""
    with suppress(OSError), open(path, "rb") as file:
        return sys.platform == "win32" or file.read(4).startswith(_PROGRAM_STARTS)
    return True


def cli_advice() -> str:
    """Return a sentence that names the CLI to run in the place of a wrong one."""
    return (
        f"Leave cli_path out to run {cli}." if (cli := find_cli()) else "Install a claude-agent-sdk wheel with a CLI."
    )
