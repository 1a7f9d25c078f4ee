"""Runs a coding agent's command line with a private home folder, for the programs of coding agents in this folder."""

import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

SECONDS = 120

# In the working folder, which is removed with all that a coding agent leaves there.
new_folder = partial(tempfile.mkdtemp, dir=Path.cwd())
HOME = new_folder()


def npm_command(name: str) -> str:
    """Return the path of a command that npm installed in the working folder."""
    return str(Path.cwd() / "node_modules" / ".bin" / name)


def run(command: Sequence[str], **env: str) -> str:
    """Return the output of a command, which runs in an empty folder.

    Raises:
        RuntimeError: It failed.
    """
    done = subprocess.run(
        command,
        env={**os.environ, "HOME": HOME, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=new_folder(),
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return done.stdout
