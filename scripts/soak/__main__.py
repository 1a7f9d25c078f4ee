"""The command line, `uv run scripts/soak`: cases and faults, duration, output, and the exit status."""

import argparse
import asyncio
import contextlib
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a folder: the first path is this folder, and not the parent that has it as a package
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "integration-tests" / "support")]

from soak import report
from soak.faults import FAULTS, Room, enter_own_mounts, prepared, room
from soak.report import Settings, Totals
from soak.rest import Noise
from soak.secrets import planted
from soak.soak import KINDS, Soak, sampled

# A limit that is common on many systems, and low enough that it is soon reached.
_DESCRIPTORS = 1_024
_PROGRESS_SECONDS = 5.0


def parsed(arguments: Sequence[str] | None) -> Settings:
    parser = argparse.ArgumentParser(
        prog="scripts/soak",
        description="Mixed runs of agents under random faults. Exits with 1 if an invariant is violated.",
    )
    parser.add_argument("--minutes", type=float, help="minutes in which new cases start (default: 1)")
    parser.add_argument("--seed", type=int, help="for random choices (default: new)")
    parser.add_argument("--at-once", type=int, metavar="N", help="cases in parallel (default: 8)")
    parser.add_argument("--pool", type=int, metavar="N", help="processes of the main pool (default: 12)")
    parser.add_argument("--only", dest="faults", nargs="+", choices=[*FAULTS], metavar="FAULT", help="faults to use")
    parser.add_argument("--round", dest="first_round", type=int, metavar="N", help="start with this round (default: 0)")
    parser.add_argument("--list", dest="only_lists", action="store_true", help="print all faults and cases, and exit")
    secrets = "make N requests with planted secrets instead, and look where one can be read"
    parser.add_argument("--secrets", type=int, metavar="N", help=secrets)
    settings = parser.parse_args(arguments, Settings())
    if min(settings.minutes, settings.at_once, settings.pool) <= 0:
        parser.error("--minutes, --at-once and --pool are positive")
    settings.faults = tuple(name for name in FAULTS if name in settings.faults)
    return settings


def main(arguments: Sequence[str] | None = None) -> int:
    settings = parsed(arguments)
    if settings.only_lists:
        print("Faults", *(f"  {name:13}  {fault.about}" for name, fault in FAULTS.items()), sep="\n")
        print("\nCases", *(f"  {name:13}  {kind.__doc__}" for name, kind in KINDS.items()), sep="\n")
        return 0
    if settings.secrets:
        return asyncio.run(_secrets(settings))
    enter_own_mounts(sys.argv)
    noise = Noise()
    noise.listen()
    if sys.platform == "win32":
        raise NotImplementedError("needs POSIX")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_DESCRIPTORS, most), most))
    temporary, totals = tempfile.gettempdir(), Totals()
    with room() as folder:
        disk = "tmpfs" if folder.can_be_full else "none"
        print(f"Seed {settings.seed}; full disk by: {disk}", file=sys.stderr, flush=True)
        asyncio.run(_soak(settings, folder, temporary, totals, noise))
    totals.judge_memory(settings.first_round)
    print(report.summary(settings, totals, disk))
    return 1 if totals.broken else 0


async def _secrets(settings: Settings) -> int:
    """Print the outcomes and where secrets can be read; return 1 if any can."""
    found, outcomes = await planted(settings.secrets, settings.seed)
    print(dict(outcomes.most_common()), *(f"{count} × {place}" for place, count in found.items()), sep="\n")
    return 1 if found else 0


async def _soak(settings: Settings, folder: Room, temporary: str, totals: Totals, noise: Noise) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with prepared(folder, temporary, settings.pool) as ground:
        soak = Soak(settings, ground, stop, totals, noise.take)
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(sampled(ground, totals)), group.create_task(_print_progress(soak, totals))]
            await soak.run()
            for task in beside:
                task.cancel()


async def _print_progress(soak: Soak, totals: Totals) -> None:
    printed = 0
    while True:
        await asyncio.sleep(_PROGRESS_SECONDS)
        lines = [report.progress(totals, soak.round), *(f"  violated: {line}" for line in totals.broken[printed:])]
        printed = len(totals.broken)
        # The program that reads the output may have closed it, which must not end the soak.
        with contextlib.suppress(OSError):
            print("\n".join(lines), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
