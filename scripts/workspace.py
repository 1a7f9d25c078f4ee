"""What the scripts know of the workspace: where it is, its members, and how to call uv.

Standard library only: the scripts also run before anything is installed.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Member:
    """One package of the workspace, as its `pyproject.toml` tells it."""

    name: str
    path: Path
    requires: tuple[str, ...]
    """What it needs at run time; extras are not in it."""
    test_requires: tuple[str, ...]
    """What its own tests need besides: its dependency group `test`."""
    build_requires: tuple[str, ...]

    @property
    def module(self) -> str:
        """The name to import."""
        return self.name.replace("-", "_")


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


def normalized(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required_name(requirement: str) -> str:
    """Return the normalized name of the distribution that a requirement asks for."""
    found = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement.strip())
    if found is None:
        raise ValueError(f"not a requirement: {requirement!r}")
    return normalized(found[0])


def read_member(path: Path) -> Member:
    """Return the package whose folder is `path`."""
    table = read_toml(path / "pyproject.toml")
    project = table["project"]
    return Member(
        name=normalized(project["name"]),
        path=path,
        requires=tuple(project.get("dependencies", ())),
        test_requires=tuple(table.get("dependency-groups", {}).get("test", ())),
        build_requires=tuple(table["build-system"]["requires"]),
    )


def read_members(root: Path = ROOT) -> dict[str, Member]:
    """Return the packages of the workspace by name, in the order of their names."""
    globs: list[str] = read_toml(root / "pyproject.toml")["tool"]["uv"]["workspace"]["members"]
    folders = sorted(folder for glob in globs for folder in root.glob(glob) if (folder / "pyproject.toml").is_file())
    return {member.name: member for member in map(read_member, folders)}


def siblings(members: dict[str, Member], requirements: tuple[str, ...]) -> set[str]:
    """Return the members that `requirements` need, directly or through one another."""
    found: set[str] = set()
    waiting = [required_name(requirement) for requirement in requirements]
    while waiting:
        name = waiting.pop()
        if name in members and name not in found:
            found.add(name)
            waiting.extend(required_name(requirement) for requirement in members[name].requires)
    return found
