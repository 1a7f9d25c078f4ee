"""The README's examples run, and its table names the routes that there are."""

import re
import subprocess
import sys
from pathlib import Path

from cc_messages import Route

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


PRINTED = ["It is sunny.\n", "text mcp_tool_use mcp_tool_result text\n"]


def test_the_examples_run() -> None:
    examples = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    for example, printed in zip(examples, PRINTED, strict=True):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, timeout=30
        )
        assert (done.stdout, done.stderr) == (printed, "")


def test_the_table_has_every_route() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", README, flags=re.MULTILINE)) == {*map(str, Route)}
