"""An environment with all workspace packages and others, which the workspace's own environment does not have."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from commands import run
from workspace import ROOT, find_uv, read_members, read_toml


def workspace_pins() -> list[str]:
    return read_toml(ROOT / "pyproject.toml")["tool"]["uv"]["constraint-dependencies"]


async def create(folder: Path, wanted: Iterable[str], pins: Iterable[str], overrides: Iterable[str]) -> str:
    """Create an environment in a folder and install requirements; return its interpreter.

    Raises:
        CheckError: No versions satisfy them, or no index can be reached.
    """
    build = read_toml(ROOT / "pyproject.toml")["tool"]["uv"]["build-constraint-dependencies"]
    for name, lines in (("constraints.txt", pins), ("build.txt", build), ("overrides.txt", overrides)):
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    python = str(folder / "venv" / "bin" / "python")
    await run([*find_uv(), "venv", "--quiet", "--no-project", f"--python={sys.executable}", "venv"], folder)
    # Compiled: else each interpreter would compile again where the cache is read-only. Refreshed: uv does not notice
    # changed sources.
    options = ["--compile-bytecode", *(f"--refresh-package={path.name}" for path in read_members())]
    limits = ["--constraints=constraints.txt", "--build-constraints=build.txt", "--overrides=overrides.txt"]
    await run([*find_uv(), "pip", "install", f"--python={python}", *options, *limits, *wanted], folder)
    return python
