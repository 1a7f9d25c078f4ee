"""CLI processes and files that a test leaves."""

import time
from contextlib import suppress
from pathlib import Path

import psutil


def cli_processes() -> list[psutil.Process]:
    """Return the CLI processes started by this process."""
    running: list[psutil.Process] = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "claude" in child.name():
                running.append(child)
    return running


def leftover_files(folder: Path, before: set[Path]) -> list[list[str]]:
    """Wait until a folder has no files except those before, and return the remaining: a cancelled start ends late."""
    deadline = time.monotonic() + 10
    while (remaining := {*folder.iterdir()} - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    return [sorted(map(str, [path, *path.rglob("*")])) for path in remaining]
