"""The examples in the README run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpcore2
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
pytest_plugins = ["pytester"]
# See `test_cassette_marker.py`.
assert httpcore2


def example_in(language: str) -> str:
    (example,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return example


def test_example_for_a_test_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(example_in("python"))
    pytester.runpytest("-p", "no:cacheprovider", "-p", "no:xdist").assert_outcomes(passed=1)


def test_example_for_the_shell_directs_a_program_to_the_server(tmp_path: Path) -> None:
    script = example_in("sh").replace("/tmp/", f"{tmp_path}/").replace("--port 8400", "--port 0")
    program = 'claude() { printenv ANTHROPIC_BASE_URL CLAUDE_CONFIG_DIR; echo "$@"; }\n'
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shell = ["bash", "-m", "-c", program + script]
    env = {**os.environ, "PATH": path}
    run = subprocess.run(shell, capture_output=True, text=True, timeout=20, check=True, env=env)
    url, folder, arguments = run.stdout.splitlines()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", url)
    assert folder.endswith("/config")
    assert arguments == "-p What is the weather?"
