"""The README's examples run, and print the output below them."""

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
EXAMPLES: list[tuple[str, str]] = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_stands_below_it(number: int) -> None:
    """SES-83."""
    example, output = EXAMPLES[number]
    # The first example really starts an interpreter.
    command = [python() if number else sys.executable, "-W", "error", "-c", example]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=100)

    assert (done.stderr, done.stdout) == ("", output)


def test_each_example_has_its_output_below() -> None:
    assert len(EXAMPLES) == README.count("```python")
