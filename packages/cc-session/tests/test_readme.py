import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_example_runs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), flags=re.DOTALL)

    done = subprocess.run([sys.executable, "-W", "error", "-c", example], capture_output=True, check=True, text=True)

    assert done.stdout.splitlines() == [
        "get_weather({'city': 'Paris'})",
        'You said: "How is the weather?".',
        "get_weather returned: Sunny.",
    ]
    assert done.stderr == ""
