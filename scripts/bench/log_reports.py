"""Measure `cc-convert report` on logs, in short: `logs.py` with smaller logs, and without the peer.

    python scripts/bench/log_reports.py [--quick] [--json FILE]

The peer and its bounds are in `logs.py`, which takes minutes.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

import logs
from command_line import main
from harness.figures import Effort, Figure, Group, Suite

MEGABYTES = 60
ROUNDS = 3


async def measure(effort: Effort) -> list[Figure]:
    """Measure the reports in alternation on each kind of logs."""
    found: list[Figure] = []
    for kind in logs.FILES:
        with tempfile.TemporaryDirectory() as folder:
            megabytes = float(effort.times(MEGABYTES, 4))
            rounds = effort.times(ROUNDS, 1)
            result = await asyncio.to_thread(logs.compare, kind, Path(folder) / "logs", rounds, megabytes, None)
        # The size of the logs is listed with the commands.
        named: dict[str, dict[str, float]] = {name: value for name, value in result.items() if name != "megabytes"}
        times = {name: [value["seconds"]] for name, value in named.items()}
        memory = {name: [value["megabytes"]] for name, value in named.items()}
        title = f"Report over {megabytes:.0f} MB of {kind} logs, medians of {rounds}"
        found += Group("logs", title, "s").figures(times)
        found += Group("logs", f"Memory of a report over {kind} logs", "MB").figures(memory)
    return found


SUITE = Suite("logs", "Reports on logs", measure)

if __name__ == "__main__":
    sys.exit(main([SUITE], __doc__))
