"""Files to which only the owner has access."""

import os
import stat
from pathlib import Path

__all__ = ["check_private", "read_private"]


def read_private(path: Path) -> str:
    """Return a private file's text.

    Raises:
        OSError: The file cannot be read.
        ValueError: Other users have access to it, or it is not a regular file with a text.
    """
    # Opening a named pipe would wait for a writer.
    at_once = getattr(os, "O_NONBLOCK", 0)
    with open(path, encoding="utf-8", opener=lambda path, flags: os.open(path, flags | at_once)) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise ValueError("it is not a regular file")
        check_private(mode)
        return file.read()


def check_private(mode: int) -> None:
    """Raise `ValueError` if others than the owner have access to a file with this mode."""
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ValueError(f"other users have access to it (mode {stat.S_IMODE(mode):o}): chmod 600 takes it away")
