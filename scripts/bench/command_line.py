"""Command line of the benchmarks, for all together or for one alone."""

from collections.abc import Sequence

from bounds import BOUNDS
from harness.command import main as run_command
from harness.figures import Suite
from peers import peer_environment


def main(suites: Sequence[Suite], description: str | None) -> int:
    """Run the selected benchmarks, and return the exit status."""
    return run_command(suites, BOUNDS, peer_environment, (description or "").partition("\n")[0])
