"""The README's examples, run on the loopback API."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cc_loopback import LoopbackServer

try:
    from prepared_python import python
except ImportError:  # the package is tested alone

    def python() -> str:
        return sys.executable


README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def the_answer(body: dict[str, Any]) -> str:
    return "The answer."


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, loopback: LoopbackServer, tmp_path: Path) -> None:
    loopback.respond = the_answer
    done = subprocess.run(
        [python(), "-c", EXAMPLES[number]],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, **loopback.env()},
    )
    assert (done.stdout, done.stderr) == ("The answer.\n", "")
    assert loopback.requests
