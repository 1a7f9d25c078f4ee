"""What the scripts know of the workspace: where it is, its members, and how to call uv.

Standard library only: the scripts also run before anything is installed.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def find_uv() -> list[str]:
    """Return the words that start uv.

    Raises:
        SystemExit: uv is not installed.
    """
    if path := shutil.which("uv"):
        return [path]
    # pip may install uv where PATH does not look, so ask this interpreter as well.
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    raise SystemExit("uv is missing: python3 -m pip install uv")


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def read_members() -> dict[Path, dict[str, Any]]:
    """Return the folders of the packages, which are named like them, and what `pyproject.toml` says there."""
    return {path.parent: read_toml(path) for path in sorted(ROOT.glob("packages/*/pyproject.toml"))}


def required_name(requirement: str) -> str:
    """Return the name of the distribution that a requirement asks for, as indexes compare it."""
    found = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement.strip())
    if found is None:
        raise ValueError(f"not a requirement: {requirement!r}")
    return re.sub(r"[-_.]+", "-", found[0]).lower()
