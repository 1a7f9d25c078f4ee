"""The README's command."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
[COMMAND] = re.findall(r"```bash\n(.*?)\n```", README, flags=re.DOTALL)


@pytest.mark.slow
def test_the_command_runs(tmp_path: Path) -> None:
    program, *options = shlex.split(COMMAND)
    done = subprocess.run(
        [Path(sys.executable).with_name(program), *options],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "not Claude" in done.stdout
