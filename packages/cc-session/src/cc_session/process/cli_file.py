"""Path of the Claude Code CLI, and advice on how to log in."""

import shutil
import sys
from pathlib import Path

import claude_agent_sdk

__all__ = ["bundled_cli", "find_cli", "login_advice"]


def bundled_cli() -> str:
    """Return the path to the CLI in the SDK's wheel; a wheel for all platforms has none."""
    name = "claude.exe" if sys.platform == "win32" else "claude"
    return str(Path(claude_agent_sdk.__file__).parent / "_bundled" / name)


def find_cli(path: str | None = None) -> str | None:
    """Return the CLI for sessions: `path`, else the SDK's CLI, else `claude` on PATH; None if there is none."""
    bundled = bundled_cli()
    return path or (bundled if Path(bundled).is_file() else shutil.which("claude"))


def login_advice() -> str:
    """Return a sentence that says how to log in. A user's CLIs share the login."""
    return f"Set ANTHROPIC_API_KEY, or run {find_cli() or 'claude'} in a terminal and type /login."
