"""Faults: each is repeated during a round, and undone when it is cancelled; and the faults for each round.

The plan for a round is pure, and deterministic for a seed.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import psutil

from .ground import Ground

INJECTED = "Injected as number"
"""Prefix for messages in injected API errors."""

# In a command line: a bridge from a CLI process to the tools in this process.
_BRIDGE = "cc_ipc_bridge"
_CLI = "claude"
# Seconds between two attempts to take the free descriptors.
_USE_UP_EVERY = 0.02
# Seconds from the start of a case to a fault; a case takes about as long.
_STRIKE_WITHIN = 0.3

ROUND_SECONDS = 15.0
"""Duration of a round in a long soak, in seconds."""
_LEAST_ROUNDS = 3
# In a calm round each run must succeed; so a fault with lasting damage is detected.
_CALM_EVERY = 5
_FULL_REST_EVERY = 6
# With more faults hardly any run would succeed, or a failure would have no clear cause.
_MOST_TOGETHER = 5


Do = Callable[[Ground, Random], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """A fault: once for a share of the cases, or, for a lasting fault, at an interval in seconds."""

    about: str
    do: Do
    share: float = 0.0
    seconds: float = 0.0

    async def repeat(self, ground: Ground, chance: Random) -> None:
        """Inject the fault at random moments until cancelled."""
        cases = ground.begun
        while True:
            if self.seconds:
                await asyncio.sleep(chance.expovariate(1 / self.seconds))
                await self.do(ground, chance)
                continue
            await asyncio.sleep(chance.uniform(0, _STRIKE_WITHIN))
            new, cases = ground.begun - cases, ground.begun
            for _ in range(new):
                if chance.random() < self.share:
                    await self.do(ground, chance)


def refuse(status: int) -> Do:
    async def do(ground: Ground, chance: Random) -> None:
        await _aim(ground, str(status), status=status, headers={"retry-after": "0.01"}, times=1)

    return do


async def cut(ground: Ground, chance: Random) -> None:
    await _aim(ground, "cut", after_events=chance.randint(0, 12))


async def event(ground: Ground, chance: Random) -> None:
    await _aim(ground, "event", after_events=chance.randint(1, 12), status=529)


async def kill(ground: Ground, chance: Random) -> None:
    _kill(ground, "kill", _children(lambda child: child.name() == _CLI), chance)


async def bridge(ground: Ground, chance: Random) -> None:
    _kill(ground, "bridge", _children(lambda child: _BRIDGE in child.cmdline()), chance)


async def api(ground: Ground, chance: Random) -> None:
    async with ground.lasting("api"):
        await ground.api.order("stop")
        try:
            await asyncio.sleep(chance.uniform(0, 1.0))
        finally:
            await ground.api.order("start")


async def disk(ground: Ground, chance: Random) -> None:
    if not ground.room.can_be_full:
        return
    async with ground.lasting("disk"):
        with ground.room.full():
            await asyncio.sleep(chance.uniform(0.2, 2.0))


async def descriptors(ground: Ground, chance: Random) -> None:
    """Prevent this process for a while from opening files, or more than a few."""
    spare, until = chance.randint(0, 12), time.monotonic() + chance.uniform(0.2, 2.0)
    opened: list[int] = []
    async with ground.lasting("descriptors"):
        try:
            while time.monotonic() < until:
                _use_up_descriptors(opened, spare)
                await asyncio.sleep(_USE_UP_EVERY)
        finally:
            for descriptor in opened:
                os.close(descriptor)


async def idle(ground: Ground, chance: Random) -> None:
    """Do nothing: the cases themselves pause, mostly on a pool with a short idle time for processes."""


FAULTS: Mapping[str, Fault] = {
    "429": Fault("the API rejects a request: rate limit", refuse(429), share=0.15),
    "500": Fault("the API rejects a request: internal error", refuse(500), share=0.15),
    "529": Fault("the API rejects a request: overloaded", refuse(529), share=0.15),
    "cut": Fault("an answer of the API is cut off", cut, share=0.15),
    "event": Fault("an answer of the API ends with an error event", event, share=0.15),
    "kill": Fault("a CLI process is killed", kill, share=0.2),
    "bridge": Fault("a bridge process of stdio tools is killed", bridge, share=0.3),
    "api": Fault("the API is stopped, and started again on the same port", api, seconds=3.0),
    "disk": Fault("the disk for temporary files is full for a while", disk, seconds=3.0),
    "descriptors": Fault("this process can open no more files for a while", descriptors, seconds=3.0),
    "idle": Fault("long pauses, in which idle processes end", idle, seconds=1.0),
}
"""All faults by name."""


async def _aim(ground: Ground, fault: str, **how: Any) -> None:
    ground.note(fault)
    number = len(ground.records) - 1
    await ground.api.fail(number, message=f"{INJECTED} {number}.", **how)


def _children(wanted: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    children: list[psutil.Process] = []
    # When no file can be opened, the list is empty, and a process may exit during the look-up.
    with contextlib.suppress(psutil.Error, OSError):
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if wanted(child):
                    children.append(child)
    return children


def _kill(ground: Ground, fault: str, processes: Sequence[psutil.Process], chance: Random) -> None:
    if processes:
        with contextlib.suppress(psutil.Error, OSError):
            chance.choice(processes).kill()
            ground.note(fault)


def _use_up_descriptors(opened: list[int], spare: int) -> None:
    """Open files until the limit is reached, and close a few again."""
    with contextlib.suppress(OSError):
        while True:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    for _ in range(min(spare, len(opened))):
        os.close(opened.pop())


@dataclass(frozen=True)
class Round:
    """A round; if `ends_processes`, all processes are stopped after it."""

    number: int
    faults: tuple[str, ...]
    seconds: float
    ends_processes: bool


def round_seconds(minutes: float) -> float:
    """Return a round's duration, so that a short soak has several, too."""
    return min(ROUND_SECONDS, minutes * 60 / _LEAST_ROUNDS)


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
