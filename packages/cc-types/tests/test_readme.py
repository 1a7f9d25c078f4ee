import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_example_runs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), flags=re.DOTALL)

    done = subprocess.run([sys.executable, "-c", example], capture_output=True, check=True, text=True)

    assert done.stdout == "False 529 {}\nSIGKILL\n"
