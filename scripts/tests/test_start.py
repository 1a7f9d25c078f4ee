"""Each documented command in this folder starts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from check_durable import UNREACHABLE
from prepared_python import python
from workspace import ROOT

pytestmark = pytest.mark.worlds

SCRIPTS = ROOT / "scripts"
ALONE, _, IN_WORKSPACE = (SCRIPTS / "README.md").read_text("utf-8").partition("The others run")
MODULES = {"workspace.py", "line_process.py", "doc_pages.py"}


def commands(text: str) -> list[str]:
    """Return the names in a table's first column, without modules and test folders."""
    return sorted({*re.findall(r"^\| `(\w+(?:\.py)?)[` ]", text, re.MULTILINE)} - MODULES)


def run(*command: str | Path, interpreter: str = sys.executable, seconds: float = 55.0) -> str:
    done = subprocess.run([interpreter, *command], capture_output=True, text=True, timeout=seconds, cwd=ROOT)
    if done.returncode and UNREACHABLE.search(done.stdout + done.stderr):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", commands(ALONE))
def test_a_command_starts_without_any_library(name: str) -> None:
    assert "usage" in run("-S", SCRIPTS / name, "--help")


@pytest.mark.parametrize("name", commands(IN_WORKSPACE))
def test_a_command_starts_in_the_workspace(name: str) -> None:
    path = SCRIPTS / name
    # All share the libraries that the interpreter has imported.
    assert "usage" in run(path / "__main__.py" if path.is_dir() else path, "--help", interpreter=python())
