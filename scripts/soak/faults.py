"""Faults and their targets: the API, the processes, the folder; the record of faults, and the faults for each round.

The folder for temporary files is a small private disk where the machine allows it, so that it can be filled: as root on
Linux (or where users may create namespaces) a tmpfs in a private mount namespace, which ends with the last process
there. Elsewhere it is a plain folder, and the disk is never full. A round's plan is deterministic for a seed.
"""

import asyncio
import contextlib
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import psutil

from cc_model import ClaudeCodeProvider
from cc_session import PoolLimits, Timeouts

from .api import Api, scripted_api

CONNECTION = "connection"
"""The process failed, or lost the API."""
TOOL = "tool"
"""A tool in the CLI's own loop could not be called."""
NO_DESCRIPTOR = "no descriptor"
"""An error from the operating system, where a file is read before a request is made."""

BRIEF_PLACES = 2
"""Number of processes in the second provider, with another login; they end as soon as they are idle."""
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

INJECTED = "Injected as number"
"""Prefix for messages in injected API errors."""
# In a command line: a bridge from a CLI process to the tools in this process.
_BRIDGE = "cc_ipc_bridge"
_CLI = "claude"
# Seconds between two attempts to take the free descriptors.
_USE_UP_EVERY = 0.02
# Seconds from the start of a case to a fault; a case takes about as long.
_STRIKE_WITHIN = 0.3
# Events in an answer, after the last of which it can break.
_MOST_EVENTS = 12

# In a calm round each run must succeed; so a fault with lasting damage is detected.
_CALM_EVERY = 5
_FULL_REST_EVERY = 6
# With more faults hardly any run would succeed, or a failure would have no clear cause.
_MOST_TOGETHER = 5


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
        return not subprocess.run(command, capture_output=True, timeout=_COMMAND_SECONDS, check=False).returncode
    return False


@dataclass
class FaultRecord:
    """A fault, and the time when it was active."""

    fault: str
    begun: float
    ended: float = math.inf


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

    def note(self, fault: str) -> None:
        """Record that a fault begins and ends now."""
        now = time.monotonic()
        self.records.append(FaultRecord(fault, now, now))

    @contextlib.asynccontextmanager
    async def lasting(self, fault: str) -> AsyncGenerator[None]:
        """Record that a fault lasts for this block."""
        self.records.append(record := FaultRecord(fault, time.monotonic()))
        try:
            yield
        finally:
            record.ended = time.monotonic()


@contextlib.asynccontextmanager
async def prepared(room: Room, temporary: str, pool: int) -> AsyncGenerator[Ground]:
    async with scripted_api(temporary) as api:
        # The CLI's own folders are on the disk that can be filled.
        folders = {"HOME": "home", "CLAUDE_CONFIG_DIR": "config", "CLAUDE_CODE_TMPDIR": "tmp"}
        own = {variable: str(room.path / "cli" / name) for variable, name in folders.items()}
        for path in own.values():
            os.makedirs(path, mode=0o700)

        def provider(pool: int | PoolLimits, env: Mapping[str, str]) -> ClaudeCodeProvider:
            return ClaudeCodeProvider(env={**env, **own}, pool=pool, max_retries=_RETRIES, timeouts=_TIMEOUTS)

        brief_pool = PoolLimits(size=BRIEF_PLACES, prewarm=0, idle_seconds=_BRIEF_SECONDS)
        async with provider(pool, api.env) as steady, provider(brief_pool, api.token_env) as brief:
            yield Ground(api, [steady, brief], room)


Do = Callable[[Ground, str, Random], Awaitable[None]]
"""Injects the fault with a name."""


@dataclass(frozen=True)
class Fault:
    """A fault: once for a share of the cases, or, for a lasting fault, at an interval in seconds."""

    about: str
    do: Do
    errors: Sequence[str]
    """Outcomes of cases that it explains."""
    share: float = 0.0
    seconds: float = 0.0
    is_kill: bool = False
    """True if it affects a single process, and so at most a single case."""

    async def repeat(self, ground: Ground, name: str, chance: Random) -> None:
        """Inject the fault at random moments until cancelled."""
        cases = ground.begun
        while True:
            if self.seconds:
                await asyncio.sleep(chance.expovariate(1 / self.seconds))
                await self.do(ground, name, chance)
                continue
            await asyncio.sleep(chance.uniform(0, _STRIKE_WITHIN))
            new, cases = ground.begun - cases, ground.begun
            for _ in range(new):
                if chance.random() < self.share:
                    await self.do(ground, name, chance)


async def fail(
    ground: Ground, fault: str, chance: Random, *, status: int | None = None, least_events: int | None = None
) -> None:
    """Let a request fail: before the answer, or after at least `least_events` events in it."""
    number = len(ground.records)
    ground.note(fault)
    how: dict[str, Any] = {"headers": {"retry-after": "0.01"}}
    if least_events is not None:
        how = {"after_events": chance.randint(least_events, _MOST_EVENTS)}
    await ground.api.fail(number, status=status, message=f"{INJECTED} {number}.", **how)


async def kill(ground: Ground, fault: str, chance: Random, *, wanted: Callable[[psutil.Process], bool]) -> None:
    children: list[psutil.Process] = []
    # When no file can be opened, there is no process to kill, and a process may exit during the look-up.
    with contextlib.suppress(psutil.Error, OSError):
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if wanted(child):
                    children.append(child)
    if children:
        with contextlib.suppress(psutil.Error, OSError):
            chance.choice(children).kill()
            ground.note(fault)


async def api(ground: Ground, fault: str, chance: Random) -> None:
    async with ground.lasting(fault):
        await ground.api.order("stop")
        try:
            await asyncio.sleep(chance.uniform(0, 1.0))
        finally:
            await ground.api.order("start")


async def disk(ground: Ground, fault: str, chance: Random) -> None:
    if not ground.room.can_be_full:
        return
    async with ground.lasting(fault):
        with ground.room.full():
            await asyncio.sleep(chance.uniform(0.2, 2.0))


async def descriptors(ground: Ground, fault: str, chance: Random) -> None:
    """Prevent this process for a while from opening files, or more than a few."""
    spare, until = chance.randint(0, 12), time.monotonic() + chance.uniform(0.2, 2.0)
    opened: list[int] = []
    async with ground.lasting(fault):
        try:
            while time.monotonic() < until:
                with contextlib.suppress(OSError):
                    while True:
                        opened.append(os.open(os.devnull, os.O_RDONLY))
                for _ in range(min(spare, len(opened))):
                    os.close(opened.pop())
                await asyncio.sleep(_USE_UP_EVERY)
        finally:
            for descriptor in opened:
                os.close(descriptor)


async def idle(ground: Ground, fault: str, chance: Random) -> None:
    """Do nothing: the cases themselves pause, mostly on a pool with a short idle time for processes."""


FAULTS: Mapping[str, Fault] = {
    "429": Fault("the API rejects a request: rate limit", partial(fail, status=429), ["429"], share=0.15),
    "500": Fault("the API rejects a request: internal error", partial(fail, status=500), ["500"], share=0.15),
    "529": Fault("the API rejects a request: overloaded", partial(fail, status=529), ["529"], share=0.15),
    "cut": Fault("an answer of the API is cut off", partial(fail, least_events=0), [CONNECTION], share=0.15),
    # After a complete block, an error event can only be reported as a connection error.
    "event": Fault(
        "an answer of the API ends with an error event", partial(fail, status=529, least_events=1),
        ["529", CONNECTION], share=0.15,
    ),
    "kill": Fault(
        "a CLI process is killed", partial(kill, wanted=lambda child: child.name() == _CLI),
        [CONNECTION], share=0.2, is_kill=True,
    ),
    "bridge": Fault(
        "a bridge process of stdio tools is killed", partial(kill, wanted=lambda child: _BRIDGE in child.cmdline()),
        [TOOL, CONNECTION], share=0.3, is_kill=True,
    ),
    "api": Fault("the API is stopped, and started again on the same port", api, [CONNECTION], seconds=3.0),
    "disk": Fault("the disk for temporary files is full for a while", disk, [CONNECTION], seconds=3.0),
    "descriptors": Fault(
        "this process can open no more files for a while", descriptors, [CONNECTION, NO_DESCRIPTOR], seconds=3.0
    ),
    "idle": Fault("long pauses, in which idle processes end", idle, [], seconds=1.0),
}  # fmt: skip
"""All faults by name."""


@dataclass(frozen=True)
class Round:
    """A round; if `ends_processes`, all processes are stopped after it."""

    number: int
    faults: tuple[str, ...] = ()
    seconds: float = 0.0
    ends_processes: bool = False


def planned(seed: int, number: int, faults: Sequence[str], seconds: float) -> Round:
    """Return a round: calm, with each single fault in turn, or with some faults together."""
    chance = Random(f"{seed}/{number}")
    if number % _CALM_EVERY == _CALM_EVERY - 1:
        chosen: Sequence[str] = ()
    elif number % 2:
        chosen = [faults[(number // 2 + seed) % len(faults)]]
    else:
        chosen = chance.sample(faults, min(len(faults), chance.randint(2, _MOST_TOGETHER)))
    return Round(number, tuple(sorted(chosen)), seconds, number % _FULL_REST_EVERY == _FULL_REST_EVERY - 1)
