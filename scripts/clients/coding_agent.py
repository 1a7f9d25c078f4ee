"""Runs a coding agent's command line with a private home folder, for the programs of coding agents in this folder."""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

SECONDS = 120

_home = tempfile.TemporaryDirectory(prefix="clients-", ignore_cleanup_errors=True)


def npm_command(name: str) -> str:
    """Return the path of a command that npm installed in the working folder."""
    return str(Path.cwd() / "node_modules" / ".bin" / name)


def run(command: Sequence[str], **env: str) -> str:
    """Return the output of a command, which runs in an empty folder.

    Raises:
        RuntimeError: It failed.
    """
    with tempfile.TemporaryDirectory(prefix="clients-", ignore_cleanup_errors=True) as folder:
        done = subprocess.run(
            command,
            env={**os.environ, "HOME": _home.name, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=folder,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stdout
