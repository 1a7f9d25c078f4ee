"""The pool's test with random cancels, interrupts and kills, with many more callers than in a usual run.

    python scripts/bench/session_pool_soak.py

Eight callers at once, ten thousand in all, on four processes that are killed now and then. Takes some ten minutes, more
on a busy machine. Exits as pytest does.
"""

import os
import sys
from pathlib import Path

CALLERS = 10_000

PACKAGE = Path(__file__).parents[2] / "packages" / "cc-session"


def main() -> None:
    """Become pytest."""
    os.environ["CC_SESSION_CHAOS"] = str(CALLERS)
    pytest = [sys.executable, "-m", "pytest", "-n", "0", str(PACKAGE / "tests" / "test_pool_chaos.py"), "-v"]
    os.execv(sys.executable, pytest)


if __name__ == "__main__":
    main()
