"""Mixed runs while the API fails, processes are killed, and the machine runs out of resources: `scripts/soak`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from anyio import to_thread

from soak.faults import FAULTS

SOAK = Path(__file__).parents[1] / "scripts" / "soak"

# The long test takes half a minute alone, and several times as long on a busy machine.
_SECONDS = 280
SHORT = pytest.param(["--minutes=0.03", "--only", "529", "cut", "kill"], marks=pytest.mark.slow, id="short")
LONG = pytest.param(["--minutes=0.2"], marks=pytest.mark.slow, id="long")


@pytest.mark.timeout(_SECONDS + 10)
@pytest.mark.parametrize("extent", [SHORT, LONG])
async def test_each_run_ends_correctly_or_with_the_correct_error_and_leaves_nothing(extent: list[str]) -> None:
    """MODEL-49, MODEL-51, MODEL-65, MSG-54: a round with a few faults, or three rounds with all faults between them."""
    command = [sys.executable, SOAK, *extent, "--seed=71", "--at-once=6", "--pool=3"]
    process = await to_thread.run_sync(
        lambda: subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    )
    summary = process.stdout
    assert process.returncode == 0, summary + process.stderr
    assert "\nviolated invariants: 0" in summary
    assert re.search(r"^ended: .*\bright [1-9]", summary, re.MULTILINE)
    assert re.search(rf"^({'|'.join(FAULTS)}) +[1-9]", summary, re.MULTILINE)
