"""Runs at once while the API fails and processes are killed; `scripts/bench/model_chaos.py` makes more of them."""

import subprocess
import sys
from pathlib import Path

from anyio import to_thread

SCRIPT = Path(__file__).parents[1] / "scripts" / "bench" / "model_chaos.py"


async def test_every_run_ends_right_or_with_the_right_error_and_nothing_is_left() -> None:
    """MODEL-49, MODEL-51, MODEL-65: three of each kind, nearly all at once."""
    command = [sys.executable, SCRIPT, "--runs=21", "--at-once=20", "--pool=3"]
    done = await to_thread.run_sync(lambda: subprocess.run(command, capture_output=True, text=True, timeout=55))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong: 0; left over: 0" in done.stdout
