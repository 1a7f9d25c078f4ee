"""The tests of cc-ipc that take chances, with many more of them than in a usual run.

    python scripts/bench/ipc_soak.py

Bridge, host and parent are killed 100 times each at random moments; decoder, server and bridge get 100,000 random and
mutated frames each. Takes some minutes. Exits as pytest does.
"""

import os
import sys
from pathlib import Path

KILLS = 100
FRAMES = 100_000
SECONDS_PER_TEST = 1_800

PACKAGE = Path(__file__).parents[2] / "packages" / "cc-ipc"


def main() -> None:
    """Become pytest."""
    os.environ |= {"CC_IPC_KILLS": str(KILLS), "CC_IPC_FUZZ_FRAMES": str(FRAMES)}
    pytest = [sys.executable, "-m", "pytest", "-n", "0", str(PACKAGE), "-k", "killed or random", "-v"]
    os.execv(sys.executable, [*pytest, f"--timeout={SECONDS_PER_TEST}"])


if __name__ == "__main__":
    main()
