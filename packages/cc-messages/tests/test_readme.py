"""The README's examples run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

try:
    from prepared_python import python
except ImportError:  # the package is tested alone

    def python() -> str:
        return sys.executable


README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
PRINTED = ["It is sunny.\n", "text mcp_tool_use mcp_tool_result text\n"]


@pytest.mark.slow
def test_the_examples_run() -> None:
    examples = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    # The first example really starts an interpreter.
    for start, example, printed in zip([sys.executable, python()], examples, PRINTED, strict=True):
        process = subprocess.run([start, "-W", "error", "-c", example], capture_output=True, text=True, timeout=100)
        assert (process.stdout, process.stderr) == (printed, "")
