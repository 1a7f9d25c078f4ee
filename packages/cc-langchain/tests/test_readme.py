"""The README's examples, run on the loopback API."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cc_loopback import LoopbackServer

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
OUTPUTS = ["['weather']\n", 2 * 'You said: "Hello!".\n']


@pytest.mark.slow
@pytest.mark.parametrize(("example", "output"), [*zip(EXAMPLES, OUTPUTS, strict=True)])
def test_an_example_runs(example: str, output: str, loopback: LoopbackServer, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", example],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, **loopback.env()},
    )
    assert (done.stdout, done.stderr) == (output, "")
