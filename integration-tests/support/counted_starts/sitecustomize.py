"""Count the CLI's starts: tests and the Python programs that they run have this folder on their PYTHONPATH.

Not by an audit hook: while one runs, Python refuses the trace function that coverage sets in another thread.
"""

import os
import subprocess
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

_FILE = os.environ.get("TESTS_CLI_STARTS")
_init: Callable[..., None] = subprocess.Popen.__init__


@wraps(_init)
def _counted(self: object, args: Any, *others: Any, **options: Any) -> None:
    command: Sequence[Any] = [args] if isinstance(args, str | bytes) or hasattr(args, "__fspath__") else args
    program: Any = options.get("executable") or command[0]
    if os.fsdecode(program).endswith("_bundled/claude"):
        module = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
        # One short write, so that the lines of several processes do not mix.
        with open(_FILE or os.devnull, "a", encoding="utf-8") as file:
            file.write(f"{module}\n")
    _init(self, args, *others, **options)


if _FILE:
    subprocess.Popen.__init__ = _counted
