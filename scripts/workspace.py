"""Facts about the workspace for the scripts: folder, members, tables, and the uv command.

Standard library only: the scripts also run before anything is installed.
"""

import importlib.util
import re
import shutil
import sys
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def find_uv() -> list[str]:
    """Return the command line prefix that starts uv.

    Raises:
        SystemExit: uv is not installed.
    """
    if path := shutil.which("uv"):
        return [path]
    # pip may install uv outside PATH, so try this interpreter as well.
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    raise SystemExit("uv is missing: python3 -m pip install uv")


def read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def read_members() -> dict[Path, dict[str, Any]]:
    """Return the packages' folders, which have the packages' names, with the `pyproject.toml` data."""
    return {path.parent: read_toml(path) for path in sorted(ROOT.glob("packages/*/pyproject.toml"))}


def workspace_pins() -> list[str]:
    return read_toml(ROOT / "pyproject.toml")["tool"]["uv"]["constraint-dependencies"]


def markdown_table(head: Collection[object], *rows: Iterable[object]) -> list[str]:
    """Return the lines of a table."""
    return [f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows)]


def write_table(page: Path, lines: list[str]) -> None:
    """Replace the table in a documentation page, and all below it."""
    introduction = page.read_text(encoding="utf-8").partition("\n| ")[0]
    page.write_text("\n".join([introduction, *lines, ""]), encoding="utf-8")


def required_name(requirement: str) -> str:
    """Return the normalized distribution name in a requirement."""
    match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement.strip())
    if match is None:
        raise ValueError(f"not a requirement: {requirement!r}")
    return re.sub(r"[-_.]+", "-", match[0]).lower()
