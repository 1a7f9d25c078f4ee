#!/usr/bin/env python3
"""Check that each package works by itself, unlike in the workspace, where all its tests have run.

- All are built: an sdist, and from that a wheel with its types and its license.
- Each, with its runtime dependencies alone in the pinned versions, is imported without a warning. It has no undeclared
  imports, and the SDK, with its CLI, is installed only where it is needed (`check_alone.py`).
- The examples of its README run; their tests bring the dependency group `test`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from commands import CheckError, check_each, finish, run
from workspace import ROOT, find_uv, read_members, required_name

ALONE = Path(__file__).with_name("check_alone.py")
TOOLS = ("anyio", "hypothesis", "pytest", "pytest-timeout")
# As strict as in the workspace, without the settings that only apply to all packages together.
PYTEST = ["pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib", "-o", "pythonpath="]


def missing(folder: Path) -> list[str]:
    """Return the missing type markers and licenses of the wheels in a folder."""
    found: list[str] = []
    for wheel in sorted(folder.glob("*.whl")):
        names = zipfile.ZipFile(wheel).namelist()
        wanted = (f"{wheel.name.partition('-')[0]}/py.typed", ".dist-info/licenses/LICENSE")
        found += [f"{wheel.name} has no {end}" for end in wanted if not any(name.endswith(end) for name in names)]
    return found


async def build() -> None:
    """Build all packages."""
    with tempfile.TemporaryDirectory(prefix="cc-check-") as folder:
        await run([*find_uv(), "build", "--all-packages", f"--out-dir={folder}"], ROOT)
        if problems := missing(Path(folder)):
            raise CheckError("\n".join(problems))
        # Else uv would take wheels of an earlier run from its cache: it does not check for changed sources.
        paths = [*map(str, read_members())]
        await run([*find_uv(), "pip", "install", "--refresh", "--no-deps", f"--target={folder}/cached", *paths], ROOT)


async def check(path: Path, table: dict[str, Any], python: str) -> str:
    """Check one package; return its line of output."""
    alone = [*find_uv(), "run", "--quiet", "--isolated", "--exact", "--no-editable", "--no-default-groups"]
    # Most files of an environment for one use are never imported.
    alone += ["--no-compile-bytecode", f"--python={python}", f"--package={path.name}"]
    installed = await run([*alone, "python", "-I", "-W", "error", str(ALONE), path.name], ROOT)
    groups = table.get("dependency-groups", {})
    alone += [f"--group={name}" for name in groups]
    tests = [one for one in (path / "tests").glob("test_*.py") if one.name in ("test_readme.py", "test_package.py")]
    # The root's fixtures for all packages need the loopback API, which not every package has in its tests.
    shared = path.name == "cc-loopback" or "cc-loopback" in map(required_name, groups.get("test", ()))
    words = [*PYTEST, f"--confcutdir={ROOT if shared else path}", *map(str, tests)]
    output = await run([*alone, *(f"--with={tool}" for tool in TOOLS), *words], ROOT)
    return f"{int(installed):3} distributions; README: {output.splitlines()[-1]}"


async def check_all(names: Iterable[str], python: str) -> list[str]:
    """Build all packages and check the named ones; return the failures."""
    await build()
    members = read_members().items()
    return await check_each(
        {path.name: partial(check, path, one, python) for path, one in members if path.name in names}
    )


def main() -> int:
    """Run the command; return its exit code."""
    names = [path.name for path in read_members()]
    parser = argparse.ArgumentParser(description="Build each package of the workspace, and check it alone.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="packages to check (default: all)")
    parser.add_argument("--python", default=sys.executable, help="interpreter or version (default: this one)")
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.names} - {*names}):
        parser.error(f"unknown package: {', '.join(unknown)}")
    return finish(check_all(arguments.names or names, arguments.python))


if __name__ == "__main__":
    sys.exit(main())
