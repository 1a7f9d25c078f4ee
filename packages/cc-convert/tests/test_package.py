import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import cc_convert

pytestmark = pytest.mark.worlds

README = Path(__file__).parents[1] / "README.md"


def test_public_functions_are_annotated() -> None:
    """SDK-ADD-15: the strict checks for types and coverage run beside the tests."""
    functions = [getattr(cc_convert, name) for name in cc_convert.__all__]
    functions = [function for function in functions if not isinstance(function, type)]

    assert len(functions) == 3
    assert all(len(function.__annotations__) == 2 for function in functions)


def test_importing_brings_no_sdk() -> None:
    """SDK-ADD-13, SDK-ADD-05, ARCH-09: conversion only translates, so it needs no dependency that could run a query."""
    code = "import sys, cc_convert; print(*sys.modules)"

    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()

    assert "cc_convert" in modules
    assert not {"claude_agent_sdk", "mcp", "anyio", "asyncio"} & set(modules)


# Dependencies for an extra or another platform only.
_OF_OTHERS = re.compile(r"extra ==|win32|Windows|emscripten")


def test_installing_brings_no_sdk_and_little_else() -> None:
    """LOG-58, SDK-ADD-13, ARCH-09: under 20 MB, counted over all installed files."""
    wanted, packages = ["cc-convert"], set[str]()
    while wanted:
        name = wanted.pop()
        if name not in packages:
            packages.add(name)
            required = importlib.metadata.requires(name) or []
            wanted += [re.split(r"[^\w.-]", one)[0] for one in required if not _OF_OTHERS.search(one)]

    files = [file for name in packages for file in importlib.metadata.files(name) or ()]
    assert "claude-agent-sdk" not in packages
    assert sum(file.size or 0 for file in files) < 20_000_000


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text("utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize(
    ("number", "output"),
    [
        (0, "request claude-sonnet-5 100 1 0.00021\nrequest claude-sonnet-5 100 1 0.00021\n"),
        (1, "The file says: sunny, 21 degrees.\n200 40 0.0008\n"),
    ],
)
def test_the_examples_of_the_readme_run(number: int, output: str) -> None:
    log = Path(__file__).parent / "logs" / "tool_call.jsonl"

    done = subprocess.run(
        [sys.executable, "-c", blocks("python")[number], str(log)], capture_output=True, check=True, text=True
    )

    assert done.stdout.startswith(output)


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    """LOG-48: as printed there, in one folder, in order."""
    logs = Path(__file__).parent / "logs"
    shutil.copytree(logs, tmp_path / "claude" / "projects" / "p")
    shutil.copytree(logs, tmp_path / "runs")
    shutil.copy(logs / "tool_call.jsonl", tmp_path / "runs" / "turn.jsonl")
    [commands] = blocks("sh")
    script = "set -euo pipefail\n" + commands.replace("cc-convert", f"{sys.executable} -m cc_convert")

    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)

    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert {"archive.jsonl", "report.html"} <= {path.name for path in tmp_path.iterdir()}
    assert '"result": "The file says: sunny, 21 degrees."' in done.stdout
