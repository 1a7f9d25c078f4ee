"""The folder for temporary files: a small private disk where the machine allows it, so that it can be filled.

As root on Linux (or where users may create namespaces) it is a tmpfs in a private mount namespace, which ends with the
last process there. Elsewhere it is a plain folder, and the disk is never full.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

_MARK = "SOAK_OWN_MOUNTS"
_TMPFS = ("mount", "-t", "tmpfs", "-o", "size=64m,mode=700", "soak")
# A system call takes milliseconds.
_COMMAND_SECONDS = 20.0
_BLOCK = 65_536


def enter_own_mounts(arguments: Sequence[str]) -> None:
    """Restart the same program in a private mount namespace, if that is allowed here and not done yet."""
    if _MARK in os.environ or shutil.which("unshare") is None:
        return
    for unshare in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        if _succeeds(*unshare, *_TMPFS, "/tmp"):  # noqa: S108
            os.environ[_MARK] = "1"
            os.execvp("unshare", [*unshare, sys.executable, *arguments])  # the path is private


@dataclass
class Room:
    """The folder, and a way to fill it."""

    path: Path
    can_be_full: bool

    @contextlib.contextmanager
    def full(self) -> Generator[None]:
        ballast = self.path / "ballast"
        try:
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(_BLOCK))
            yield
        finally:
            ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def room() -> Generator[Room]:
    """Create the folder, use it for all temporary files, and remove it at the end."""
    path = Path(tempfile.mkdtemp(prefix="soak-"))
    is_mounted = _MARK in os.environ and _succeeds(*_TMPFS, path)
    try:
        with patch.dict(os.environ, TMPDIR=str(path)), patch("tempfile.tempdir", str(path)):
            yield Room(path, is_mounted)
    finally:
        if is_mounted:
            _succeeds("umount", path)
        shutil.rmtree(path, ignore_errors=True)


def _succeeds(*command: str | Path) -> bool:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, timeout=_COMMAND_SECONDS, check=False)
        return done.returncode == 0
    return False
