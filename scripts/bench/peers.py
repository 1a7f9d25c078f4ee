"""The peer from the package index, pydantic-ai-claude-code, in a separate environment with an older pydantic-ai."""

import os
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

# The last pydantic-ai that it supports, and the packages which that version needs.
REQUIREMENTS = (
    "pydantic-ai-claude-code",
    "pydantic-ai-slim==1.30.0",
    "pydantic-ai==1.30.0",
    "opentelemetry-api<1.39",
    "opentelemetry-sdk<1.39",
)
# Difference that limits the comparison.
_UNLIKE = (
    "It writes the prompt into a file, which a real model first reads by a tool call; the scripted API answers "
    "at once, so that the second request is not in its figures."
)
# About a hundred packages over a slow connection.
_INSTALL_SECONDS = 600.0


@contextmanager
def peer_environment() -> Generator[tuple[Path | None, str]]:
    """Yield the interpreter in the peer's environment, or None, and a note; the environment is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-peer-", ignore_cleanup_errors=True) as name:
        python = Path(name) / "bin" / "python"
        # `uv run` sets the path to uv, which may not be on PATH.
        uv = os.environ.get("UV", "uv")
        install = (uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(python))
        problem = _run(name, uv, "venv", "--quiet", "--clear", name) or _run(name, *install, *REQUIREMENTS)
        if problem:
            print(f"No environment for the peer, going on without it: {problem}")
            yield None, f"The peer was not measured: {problem.splitlines()[0]}"
        else:
            yield python, f"The peer is {_version(python)} with pydantic-ai 1.30.0. {_UNLIKE}"


def _run(folder: str, *command: str) -> str:
    """Run a command in a folder without this workspace's version pins, and return the error output."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stderr.strip() or f"exit code {done.returncode}") if done.returncode else ""


def _version(python: Path) -> str:
    code = "from importlib.metadata import version; print(version('pydantic-ai-claude-code'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    return f"pydantic-ai-claude-code {done.stdout.strip()}"
