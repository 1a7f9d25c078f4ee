"""The examples run, and the README shows them unchanged."""

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cc_loopback import LoopbackServer
from doc_pages import free_port
from prepared_python import python

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPTS = ["agent.py", "anthropic_client.py", "cli_loop.py", "session.py"]
MORE_SCRIPTS = [
    "langgraph_agent.py",
    "session_chat.py",
    "session_hooks.py",
    "session_policy.py",
    "session_pool.py",
    "session_query.py",
]
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
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path, env=env)
    assert run.returncode == 0, run.stderr
    assert "The answer." in run.stdout
    assert run.stderr == ""


@pytest.mark.slow
def test_the_langgraph_example_calls_its_tool_and_keeps_its_conversation(
    loopback: LoopbackServer, tmp_path: Path
) -> None:
    """MSG-130"""
    env = {**os.environ, **loopback.env()}
    command = [python(), ROOT / "examples" / "langgraph_agent.py"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True, cwd=tmp_path, env=env)
    assert run.stdout.count("weather returned: sunny in ") == 2
    assert [len(body["messages"]) for body in loopback.requests] == [1, 3, 5, 7]


@pytest.mark.slow
def test_the_fastapi_example_answers_streams_and_reports_failures(loopback: LoopbackServer, tmp_path: Path) -> None:
    """MODEL-114"""
    port = free_port()
    command = [python(), "-m", "uvicorn", "--app-dir", ROOT / "examples", "fastapi_app:app", f"--port={port}"]
    env = {**os.environ, **loopback.env()}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=env) as server:
        try:
            assert server.stderr is not None
            assert any("Uvicorn running" in line for line in server.stderr)
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
                city = http.post("/city", json={"text": "A city in France."})
                assert (city.status_code, city.json().keys()) == (200, {"name", "country"})
                assert http.post("/chat", json={"text": "Hello!"}).text == 'You said: "Hello!".'
                assert http.post("/chat", json={"question": "Hello!"}).status_code == 422
                for status, expected in ((429, 503), (400, 502)):
                    loopback.fail_next(status, times=3, headers={"retry-after": "0"})
                    failure = http.post("/city", json={"text": "A city in France."})
                    assert failure.status_code == expected
                    loopback.reset()
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=20)


@pytest.mark.parametrize("name", ["fastapi", "langgraph"])
def test_a_page_shows_its_example_unchanged(name: str) -> None:
    [path] = (ROOT / "examples").glob(f"{name}_*.py")
    page = (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8")
    assert f"\n{path.read_text(encoding='utf-8').strip()}\n```" in page


@pytest.mark.parametrize("name", [*SCRIPTS, "test_offline.py"])
def test_a_readme_shows_an_example_unchanged(name: str) -> None:
    code = (ROOT / "examples" / name).read_text(encoding="utf-8").strip()
    package = (ROOT / "packages" / "cc-model" / "README.md").read_text(encoding="utf-8")
    assert f"```python\n{code}\n```" in README + package


@pytest.mark.slow
def test_the_readme_test_passes_in_an_empty_folder(tmp_path: Path) -> None:
    """ARCH-50: without the repository's configuration of pytest."""
    [test] = [block for block in re.findall(r"```python\n(.*?)\n```", README, flags=re.DOTALL) if "def test_" in block]
    (tmp_path / "test_greeting.py").write_text(f"{test}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd=tmp_path, env=env)
    assert run.returncode == 0, run.stdout
    assert "1 passed" in run.stdout


def test_the_readme_says_first_what_a_reader_asks_first() -> None:
    """ARCH-50: the name, the two words, the subscription and the figures, before anything else."""
    first_screen = README.partition("\n## ")[0]
    places = [
        first_screen.index(text)
        for text in ("# Claude Code for Python frameworks", "```diff", "May I use my subscription?", "some 30 ms")
    ]
    assert places == sorted(places)
    assert len(first_screen.splitlines()) < 40


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
