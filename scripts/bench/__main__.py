"""Run all benchmarks, or the named ones.

    uv run scripts/bench [--only NAME…] [--list] [--json FILE] [--quick] [--peer]

Prints medians, 90th percentiles, and median ratios to a floor measured at the same time. Exits with 1 if a figure
misses a bound or a benchmark fails.
"""

import sys
from pathlib import Path

if not __package__:  # run as a folder: the first path is this folder, and not the parent that has it as a package
    sys.path[0] = str(Path(__file__).parents[1])

from bench import convert, ipc, logs, model_runs, server_protocols, server_sizes, sessions
from bench.arena import find_peers
from bench.harness import main

SUITES = (
    *model_runs.SUITES, *sessions.SUITES, ipc.SUITE, convert.SUITE, *logs.SUITES, server_sizes.SUITE,
    server_protocols.SUITE,
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(SUITES, find_peers))
