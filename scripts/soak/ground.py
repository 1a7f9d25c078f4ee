"""Environment for the soak: the API, the processes, the folder, and the record of faults.

The folder for temporary files is a small private disk where the machine allows it, so that it can be filled: as root on
Linux (or where users may create namespaces) a tmpfs in a private mount namespace, which ends with the last process
there. Elsewhere it is a plain folder, and the disk is never full.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from cc_model import ClaudeCodeProvider
from cc_session import PoolLimits, Timeouts

from .api import Api, scripted_api
from .verdict import FaultRecord

BRIEF_PLACES = 2
"""Number of processes in the second provider; they end as soon as they are idle."""
_BRIEF_SECONDS = 0.3
# A single fault is tolerated, and two in a row are not.
_RETRIES = 1
# Seconds. A busy machine may delay a process for long, and a hanging process is detected all the same.
_TIMEOUTS = Timeouts(connect=90, control=60, mcp=90)
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


@dataclass
class Ground:
    """Targets for the faults."""

    api: Api
    providers: Sequence[ClaudeCodeProvider]
    room: Room
    begun: int = 0
    """Number of cases that have begun."""
    records: list[FaultRecord] = field(default_factory=list[FaultRecord])
    """All faults up to now, in order; the index is the number of an API fault."""

    def note(self, fault: str) -> FaultRecord:
        """Record that a fault begins and ends now; the caller may change the end later."""
        now = time.monotonic()
        self.records.append(record := FaultRecord(fault, now, now))
        return record

    @contextlib.asynccontextmanager
    async def lasting(self, fault: str) -> AsyncGenerator[None]:
        """Record that a fault lasts for this block."""
        record = self.note(fault)
        record.ended = float("inf")
        try:
            yield
        finally:
            record.ended = time.monotonic()


@contextlib.asynccontextmanager
async def prepared(room: Room, temporary: str, pool: int) -> AsyncGenerator[Ground]:
    async with scripted_api(temporary) as api:
        env = {**api.env, **_private_folders(room)}
        async with (
            ClaudeCodeProvider(env=env, pool=pool, max_retries=_RETRIES, timeouts=_TIMEOUTS) as steady,
            ClaudeCodeProvider(
                env=env,
                pool=PoolLimits(size=BRIEF_PLACES, prewarm=0, idle_seconds=_BRIEF_SECONDS),
                max_retries=_RETRIES,
                timeouts=_TIMEOUTS,
            ) as brief,
        ):
            yield Ground(api, [steady, brief], room)


def _private_folders(room: Room) -> dict[str, str]:
    """Return the environment with the CLI's own folders on the disk that can be filled."""
    folders = {"HOME": "home", "CLAUDE_CONFIG_DIR": "config", "CLAUDE_CODE_TMPDIR": "tmp"}
    for name in folders.values():
        os.makedirs(room.path / "cli" / name, mode=0o700)
    return {variable: str(room.path / "cli" / name) for variable, name in folders.items()}
