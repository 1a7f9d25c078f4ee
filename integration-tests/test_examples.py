"""The examples run, and the README shows them unchanged."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cc_loopback import LoopbackServer
from prepared_python import python

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPTS = ["agent.py", "anthropic_client.py", "cli_loop.py", "session.py"]
MORE_SCRIPTS = ["session_chat.py", "session_hooks.py", "session_policy.py", "session_pool.py", "session_query.py"]
"""Examples that are not in the README."""


def the_answer(body: dict[str, Any]) -> str:
    return "The answer."


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SCRIPTS, *MORE_SCRIPTS])
def test_an_example_prints_an_answer(name: str, loopback: LoopbackServer, tmp_path: Path) -> None:
    loopback.respond = the_answer
    # The first example really starts an interpreter.
    start = sys.executable if name == SCRIPTS[0] else python()
    env = {**os.environ, **loopback.env()}
    command = [start, ROOT / "examples" / name]
    run = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, cwd=tmp_path, env=env)
    assert run.returncode == 0, run.stderr
    assert "The answer." in run.stdout
    assert run.stderr == ""


@pytest.mark.parametrize("name", [*SCRIPTS, "test_offline.py"])
def test_the_readme_shows_an_example_unchanged(name: str) -> None:
    code = (ROOT / "examples" / name).read_text(encoding="utf-8").strip()
    assert f"```python\n{code}\n```" in README


def test_the_readme_shows_no_other_python() -> None:
    blocks = re.findall(r"```python\n(.*?)\n```", README, flags=re.DOTALL)
    files = {path.read_text(encoding="utf-8").strip() for path in (ROOT / "examples").glob("*.py")}
    assert set(blocks) <= files


def test_the_readme_gives_two_commands_that_need_only_python_and_pip() -> None:
    """ARCH-36"""
    section = README.partition("\n## Two commands\n")[2].partition("\n## ")[0]
    assert re.findall(r"```sh\n(.*?)\n```", section, flags=re.DOTALL) == [
        "python3 -m pip install uv && python3 -m uv run --no-dev cc-demo",
        "python3 -m uv run pytest",
    ]
    members = [tomllib.loads(path.read_text("utf-8"))["project"] for path in ROOT.glob("packages/*/pyproject.toml")]
    assert {"cc-demo": "cc_demo:main"} in [project.get("scripts") for project in members]
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "cc-demo" in workspace["dependencies"]


def test_the_readme_gives_the_test_command_that_the_checks_run() -> None:
    """ARCH-36"""
    command = "python3 -m uv run pytest"
    assert f"\n{command}\n" in README
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_every_link_in_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", README) + re.findall(r'(?:src|srcset)="([^"]+)"', README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
