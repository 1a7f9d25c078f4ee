"""The README's example runs, and its table names the routes that there are."""

import re
import subprocess
import sys
from pathlib import Path

from cc_messages import Route

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_the_example_runs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    done = subprocess.run([sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("It is sunny.\n", "")


def test_the_table_has_every_route() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", README, flags=re.MULTILINE)) == {*map(str, Route)}
