"""The command line: cases and faults, duration, output of the figures, and the exit status."""

import argparse
import asyncio
import contextlib
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import report
from .faults import FAULTS
from .ground import prepared
from .noise import Noise
from .room import Room, enter_own_mounts, room
from .soak import KINDS, Settings, Soak, sampled
from .totals import Totals

# A limit that is common on many systems, and low enough that it is soon reached.
_DESCRIPTORS = 1_024
_PROGRESS_SECONDS = 5.0
# Growth after the warm-up that libraries and the allocator may cause.
MOST_GROWTH_MB = 100.0
MOST_CLI_MB = 1_000.0


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    made = argparse.ArgumentParser(
        prog="scripts/soak",
        description="Mixed runs of agents under random faults. Exits with 1 if an invariant is violated.",
    )
    made.add_argument("--minutes", type=_positive, default=1.0, help="minutes in which new cases start (default: 1)")
    made.add_argument("--seed", type=int, help="seed of the random choices (default: a new one each time)")
    made.add_argument("--at-once", type=_count, default=8, metavar="N", help="cases in parallel (default: 8)")
    made.add_argument("--pool", type=_count, default=12, metavar="N", help="processes of the main pool (default: 12)")
    made.add_argument("--only", nargs="+", choices=[*FAULTS], metavar="FAULT", help="use these faults only")
    made.add_argument("--round", type=int, default=0, metavar="N", help="start with this round (default: 0)")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    made.add_argument("--list", action="store_true", help="print all faults and kinds of cases, and exit")
    return made


def settings_of(arguments: argparse.Namespace) -> Settings:
    """Return the settings from the command line, with a seed."""
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    faults = tuple(name for name in FAULTS if arguments.only is None or name in arguments.only)
    return Settings(arguments.minutes, seed, arguments.at_once, arguments.pool, faults, arguments.round)


def listing() -> str:
    """Return all faults and all kinds of cases, a line each."""
    faults = [f"  {name:13}  {fault.about}" for name, fault in FAULTS.items()]
    cases = [f"  {name:13}  {kind.__doc__}" for name, kind in KINDS.items()]
    return "\n".join(["Faults", *faults, "", "Cases", *cases])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    given = parser().parse_args(arguments)
    if given.list:
        print(listing())
        return 0
    enter_own_mounts(sys.argv)
    settings = settings_of(given)
    noise = Noise()
    noise.listen()
    if sys.platform == "win32":
        raise NotImplementedError("needs POSIX")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_DESCRIPTORS, most), most))
    temporary, totals = tempfile.gettempdir(), Totals()
    with room() as folder:
        print(f"Seed {settings.seed}; full disk by: {folder.way}", file=sys.stderr, flush=True)
        asyncio.run(_soak(settings, folder, temporary, totals, noise))
        way = folder.way
    totals.breaks(settings.first_round, totals.memory.problems(MOST_GROWTH_MB, MOST_CLI_MB))
    if given.json:
        given.json.write_text(report.as_json(settings, totals, way), "utf-8")
    print(report.summary(settings, totals, way))
    return 1 if totals.broken else 0


async def _soak(settings: Settings, folder: Room, temporary: str, totals: Totals, noise: Noise) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with prepared(folder, temporary, settings.pool) as ground:
        soak = Soak(settings, ground, stop, totals, noise.take)
        beside = [asyncio.create_task(sampled(ground, totals)), asyncio.create_task(_print_progress(soak, totals))]
        try:
            await soak.run()
        finally:
            for task in beside:
                task.cancel()
            for outcome in await asyncio.gather(*beside, return_exceptions=True):
                if isinstance(outcome, Exception):
                    raise outcome


async def _print_progress(soak: Soak, totals: Totals) -> None:
    printed = 0
    while True:
        await asyncio.sleep(_PROGRESS_SECONDS)
        lines = [report.progress(totals, soak.round), *(f"  violated: {line}" for line in totals.broken[printed:])]
        printed = len(totals.broken)
        # The reader of the output may have closed it, which is no reason to stop.
        with contextlib.suppress(OSError):
            print("\n".join(lines), file=sys.stderr, flush=True)


def _positive(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise ValueError
    return number


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number
