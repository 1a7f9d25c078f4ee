"""Fork safety: a forked child has no background loop, and all CLI processes belong to its parent.

Each module with such state registers a function that drops it in the child: `background.py`, `process/connection.py`,
`process/cli_process.py`, `process/watchdog.py`. `pool/owner.py` lets a pool go on in the child with new processes.
"""

import os
import sys
from collections.abc import Callable

__all__ = ["in_forked_child"]


def in_forked_child(function: Callable[[], object]) -> None:
    """Call `function` in each forked child, in the order of registration."""
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=function)
