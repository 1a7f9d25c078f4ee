"""Run all benchmarks, or the named ones.

    uv run scripts/bench [--only NAME…] [--list] [--json FILE] [--quick] [--peer]

Prints medians, 90th percentiles, and median ratios to a floor measured at the same time. Exits with 1 if a figure
misses its bound (all bounds are in `bounds.py`) or a benchmark fails.
"""

import sys

import convert
import ipc
import ipc_transports
import log_reports
import model_load
import model_runs
import server_sizes
import session_pool
import session_turn
from command_line import main

SUITES = (
    *model_runs.SUITES,
    *model_load.SUITES,
    session_turn.SUITE,
    session_pool.SUITE,
    ipc.SUITE,
    ipc_transports.SUITE,
    convert.SUITE,
    log_reports.SUITE,
    server_sizes.SUITE,
)

if __name__ == "__main__":
    sys.exit(main(SUITES, __doc__))
