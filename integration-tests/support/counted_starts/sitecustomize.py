"""Count the CLI's starts: tests and the Python programs that they run have this folder on their PYTHONPATH."""

import os
import sys
from typing import Any

_FILE = os.environ.get("TESTS_CLI_STARTS")


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        executable, command = arguments[:2]
        program = executable or (command if isinstance(command, str) else command[0])
        if os.fspath(program).endswith("_bundled/claude"):
            module = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
            # One short write, so that the lines of several processes do not mix.
            with open(_FILE or os.devnull, "a", encoding="utf-8") as file:
                file.write(f"{module}\n")


if _FILE:
    sys.addaudithook(_note)
