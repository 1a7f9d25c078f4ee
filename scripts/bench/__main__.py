"""All benchmarks in one run, or those that are named.

    uv run scripts/bench [--only NAME…] [--list] [--json FILE] [--quick] [--peer]

Prints medians, 90th percentiles, and median ratios to a floor that was measured in the same moments. Exits with 1 if a
figure misses its bound (all of them stand in `bounds.py`) or a benchmark fails.
"""

import sys

import convert
import ipc
import ipc_transports
import log_reports
import model_load
import model_runs
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
)

if __name__ == "__main__":
    sys.exit(main(SUITES, __doc__))
