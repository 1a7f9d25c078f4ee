"""What goes wrong: each fault is done again and again while its round lasts, and taken back when it is cancelled."""

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
"""How the messages of the API's errors begin."""

# The bridge of a CLI process to the tools of this one, by its command line.
_BRIDGE = "cc_ipc_bridge"
_CLI = "claude"
# Free descriptors are taken again so often; seconds.
_EAT_EVERY = 0.02
# A case is struck within this time from its begin, which is about as long as one takes; seconds.
_STRIKE_WITHIN = 0.3


Do = Callable[[Ground, Random], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong: once for such a share of the cases, or, if it lasts, after so many seconds."""

    about: str
    do: Do
    share: float = 0.0
    seconds: float = 0.0

    async def go_on(self, ground: Ground, chance: Random) -> None:
        """Do it at random moments until cancelled."""
        seen = ground.begun
        while True:
            if self.seconds:
                await asyncio.sleep(chance.expovariate(1 / self.seconds))
                await self.do(ground, chance)
                continue
            await asyncio.sleep(chance.uniform(0, _STRIKE_WITHIN))
            new, seen = ground.begun - seen, ground.begun
            for _ in range(new):
                if chance.random() < self.share:
                    await self.do(ground, chance)


def refuse(status: int) -> Do:
    """Let one request be refused."""

    async def do(ground: Ground, chance: Random) -> None:
        await _aim(ground, str(status), status=status, headers={"retry-after": "0.01"}, times=1)

    return do


async def cut(ground: Ground, chance: Random) -> None:
    """Cut one answer off."""
    await _aim(ground, "cut", after_events=chance.randint(0, 12))


async def event(ground: Ground, chance: Random) -> None:
    """End one answer with an error event."""
    await _aim(ground, "event", after_events=chance.randint(1, 12), status=529)


async def kill(ground: Ground, chance: Random) -> None:
    """Kill one CLI process, which may be starting, working, or idle."""
    _kill(ground, "kill", _children(lambda child: child.name() == _CLI), chance)


async def bridge(ground: Ground, chance: Random) -> None:
    """Kill one bridge."""
    _kill(ground, "bridge", _children(lambda child: _BRIDGE in child.cmdline()), chance)


async def api(ground: Ground, chance: Random) -> None:
    """Stop the API, and start it again after a while."""
    async with ground.lasting("api"):
        await ground.api.stop()
        try:
            await asyncio.sleep(chance.uniform(0, 1.0))
        finally:
            await ground.api.start()


async def disk(ground: Ground, chance: Random) -> None:
    """Let the disk be full for a while."""
    if ground.room.way == "none":
        return
    async with ground.lasting("disk"):
        with ground.room.full():
            await asyncio.sleep(chance.uniform(0.2, 2.0))


async def descriptors(ground: Ground, chance: Random) -> None:
    """Let no file be opened by this process for a while, or only a few."""
    spare, until = chance.randint(0, 12), time.monotonic() + chance.uniform(0.2, 2.0)
    eaten: list[int] = []
    async with ground.lasting("descriptors"):
        try:
            while time.monotonic() < until:
                _eat(eaten, spare)
                await asyncio.sleep(_EAT_EVERY)
        finally:
            for descriptor in eaten:
                os.close(descriptor)


async def idle(ground: Ground, chance: Random) -> None:
    """Do nothing: it is the cases that pause, and mostly go where a process ends soon when it is idle."""


FAULTS: Mapping[str, Fault] = {
    "429": Fault("the API refuses a request: rate limit", refuse(429), share=0.15),
    "500": Fault("the API refuses a request: internal error", refuse(500), share=0.15),
    "529": Fault("the API refuses a request: overloaded", refuse(529), share=0.15),
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
    number = len(ground.happenings) - 1
    await ground.api.fail(number, message=f"{INJECTED} {number}.", **how)


def _children(wanted: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    # Where no file can be opened nothing is found, and a process may go while it is looked at.
    with contextlib.suppress(psutil.Error, OSError):
        for child in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if wanted(child):
                    found.append(child)
    return found


def _kill(ground: Ground, fault: str, processes: Sequence[psutil.Process], chance: Random) -> None:
    if processes:
        with contextlib.suppress(psutil.Error, OSError):
            chance.choice(processes).kill()
            ground.note(fault)


def _eat(eaten: list[int], spare: int) -> None:
    """Open files until no more can be opened, and give a few back."""
    with contextlib.suppress(OSError):
        while True:
            eaten.append(os.open(os.devnull, os.O_RDONLY))
    for _ in range(min(spare, len(eaten))):
        os.close(eaten.pop())
