"""The examples in the README run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
OUTPUTS = [
    (
        r'\{"mcpServers": \{"tools": \{"type": "stdio", .*cc_ipc_bridge.*\}\}\}\n'
        r"weather was called, with the model's id toolu_1\n"
        r"\[\{'type': 'text', 'text': 'It is sunny in Bern\.'\}\]\n"
    ),
    r"\{'method': 'call_tool', 'params': \{'name': 'weather', 'arguments': \{\}\}\}\n",
]


@pytest.mark.parametrize(("example", "output"), list(zip(EXAMPLES, OUTPUTS, strict=True)), ids=["session", "frames"])
def test_an_example_of_the_readme_runs_and_leaves_no_files(example: str, output: str, folder: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=20,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert re.fullmatch(output, run.stdout)
    assert list(folder.iterdir()) == []
