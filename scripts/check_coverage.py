#!/usr/bin/env python3
"""Prove that cc-ipc's tests take every branch of it, also in the bridges and servers that they start.

Two programs that meet on a socket fail in the branches that nobody has seen run (IPC-P-73).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from workspace import ROOT

PACKAGE = ROOT / "packages" / "cc-ipc"

# Bridges end with `os._exit`, or are killed, so each writes what it has seen as early as it can.
CONFIG = """
[run]
branch = true
parallel = true
source = cc_ipc
patch = subprocess, _exit
data_file = {folder}/.coverage
"""


def main() -> int:
    """Run the tests, and report what they leave out."""
    with tempfile.TemporaryDirectory(prefix="cc-coverage-") as name:
        config = Path(name) / "coveragerc"
        config.write_text(CONFIG.format(folder=name), encoding="utf-8")
        # One process: what a busy machine slows down is not what is measured here.
        tests = ["run", "-m", "pytest", "-q", "-n", "0", "--rootdir", str(ROOT), str(PACKAGE / "tests")]
        steps = [tests, ["combine", "-q"], ["report", "-m", "--skip-covered", "--fail-under=100"]]
        return next((status for step in steps if (status := coverage(config, *step))), 0)


def coverage(config: Path, command: str, *arguments: str) -> int:
    """Run one of coverage's commands. A bridge that a test has killed may leave a file that it warns of."""
    line = [sys.executable, "-m", "coverage", command, f"--rcfile={config}", *arguments]
    return subprocess.run(line, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
