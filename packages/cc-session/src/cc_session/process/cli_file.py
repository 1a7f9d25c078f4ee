"""Path of the Claude Code CLI, checks of paths before a start, and advice on how to log in."""

import os
import shutil
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

import claude_agent_sdk

from ..errors import CLIConnectionError, CLINotFoundError
from .login import Login, login_of

__all__ = ["bundled_cli", "check_paths", "find_cli", "login_advice"]


def bundled_cli() -> str:
    """Return the path of the CLI in the SDK's wheel; a wheel for all platforms has none."""
    name = "claude.exe" if sys.platform == "win32" else "claude"
    return str(Path(claude_agent_sdk.__file__).parent / "_bundled" / name)


def find_cli(path: str | None = None) -> str | None:
    """Return the CLI for sessions: `path`, else the SDK's own, else the one on PATH; None if there is none."""
    bundled = bundled_cli()
    return path or (bundled if Path(bundled).is_file() else shutil.which("claude"))


def check_paths(cwd: str | Path | None, cli_path: str | Path | None) -> None:
    """Check paths for a process before its start.

    Raises:
        CLINotFoundError: `cli_path` does not exist.
        CLIConnectionError: `cli_path` cannot be executed, or `cwd` is not a folder.
    """
    if cwd is not None and not (folder := Path(cwd).absolute()).is_dir():
        advice = "Create the folder, or set cwd to another one."
        if matches := get_close_matches(folder.name, [path.name for path in folder.parent.glob("*/")], n=1):
            advice = f"Did you mean {str(folder.parent / matches[0])!r}?"
        raise CLIConnectionError(reason=f"cwd={str(cwd)!r} is not a folder", advice=advice)
    if cli_path is not None and shutil.which(cli_path) is None:
        if not Path(cli_path).exists():
            raise CLINotFoundError(path=str(cli_path))
        reason = f"cli_path={str(cli_path)!r} is not an executable file"
        raise CLIConnectionError(reason=reason, advice="Set it to Claude Code's CLI, or leave it out.")


def login_advice(env: Mapping[str, str] | None = None) -> str:
    """Return a sentence that says how to log in, or how to replace a refused login in `env` (over `os.environ`)."""
    cli, login = find_cli() or "claude", Login.SUBSCRIPTION if env is None else login_of(env)
    if login is Login.API_KEY:
        return "The key in ANTHROPIC_API_KEY was refused: replace it, or unset it to use the login of `claude`."
    if login is Login.GATEWAY:
        return "The token in ANTHROPIC_AUTH_TOKEN was refused: replace it."
    if login is not Login.SUBSCRIPTION:
        return "The cloud provider refused its login: renew that."
    for name in ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        if env is not None and env.get(name, os.environ.get(name)):
            return f"The token in {name} was refused: run {cli} setup-token, which prints a new one."
    return f"Set ANTHROPIC_API_KEY, or run {cli} in a terminal and type /login."
