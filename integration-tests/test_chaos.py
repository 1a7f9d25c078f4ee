"""Runs at once while the API fails and processes are killed; `scripts/bench/model_chaos.py` makes more of them."""

import subprocess
import sys
from pathlib import Path

import pytest
from anyio import to_thread

SCRIPT = Path(__file__).parents[1] / "scripts" / "bench" / "model_chaos.py"

# It takes ten seconds alone; on a machine that is busy with other tests, several times as long.
_SECONDS = 170


@pytest.mark.timeout(_SECONDS + 10)
async def test_every_run_ends_right_or_with_the_right_error_and_nothing_is_left() -> None:
    """MODEL-49, MODEL-51, MODEL-65: two of each kind, all at once."""
    command = [sys.executable, SCRIPT, "--runs=14", "--at-once=14", "--pool=2"]
    done = await to_thread.run_sync(lambda: subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong: 0; left over: 0" in done.stdout
