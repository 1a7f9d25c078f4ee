"""The folder for temporary files: a small one of our own where the machine lets us, so that it can be made full.

As root on Linux (or where users may make namespaces) it is a tmpfs in a mount namespace of our own, which is gone with
the last process in it, come what may. Elsewhere a full disk is played by a folder that nothing can be made in, and for
root, for whom no folder is so, not at all.
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
from typing import Literal

_MARK = "SOAK_OWN_MOUNTS"
_SIZE = "64m"
# To ask the kernel takes milliseconds.
_COMMAND_SECONDS = 20.0
_BLOCK = 65_536


def enter_own_mounts(arguments: Sequence[str]) -> None:
    """Become the same program in a mount namespace of its own, if that is allowed here and has not been done."""
    if _MARK in os.environ or shutil.which("unshare") is None:
        return
    for unshare in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        if _succeeds(*unshare, "mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "soak", "/tmp"):  # noqa: S108
            os.environ[_MARK] = "1"
            os.execvp("unshare", [*unshare, sys.executable, *arguments])  # the path's own


@dataclass
class Room:
    """The folder, and how it can be made full."""

    path: Path
    way: Literal["tmpfs", "read-only folder", "none"]

    @contextlib.contextmanager
    def full(self) -> Generator[None]:
        """Let nothing more be written, or made, in the folder."""
        if self.way == "none":
            yield
            return
        ballast = self.path / "ballast"
        try:
            if self.way == "tmpfs":
                _fill(ballast)
            else:
                self.path.chmod(0o500)
            yield
        finally:
            self.path.chmod(0o700)
            ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def room() -> Generator[Room]:
    """Make the folder, have all temporary files made in it, and remove it in the end."""
    path = Path(tempfile.mkdtemp(prefix="soak-"))
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    tempfile.tempdir = os.environ["TMPDIR"] = str(path)
    is_mounted = _MARK in os.environ and _succeeds("mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=700", "soak", path)
    try:
        yield Room(path, "tmpfs" if is_mounted else "none" if os.geteuid() == 0 else "read-only folder")
    finally:
        tempfile.tempdir = before
        if variable is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = variable
        if is_mounted:
            _succeeds("umount", path)
        shutil.rmtree(path, ignore_errors=True)


def _fill(ballast: Path) -> None:
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(_BLOCK))


def _succeeds(*command: str | Path) -> bool:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, timeout=_COMMAND_SECONDS, check=False)
        return done.returncode == 0
    return False
