#!/usr/bin/env python3
"""Rehearse a release on an index of this machine: install by name, upgrade from the release before, and yank.

    python3 scripts/rehearse_release.py

Builds the release, and one before it: the same packages with a lower version. Other distributions come from the usual
index. Needs uv.
"""

import argparse
import json
import re
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distributions
from pathlib import Path
from threading import Thread

from commands import CheckError, create_empty, finish, run, temporary_folder
from release import DIST, build, prepare
from workspace import find_uv, read_members

BEFORE = "0.0.1"
NAMES = sorted(path.name for path in read_members())


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@contextmanager
def served(folder: Path) -> Generator[str]:
    """Serve a folder on loopback; yield the address of its index."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple/"
        finally:
            server.shutdown()
            thread.join()


async def build_before(folder: Path) -> list[Path]:
    """Return wheels of all packages with the version before."""
    workspace = folder / "workspace"
    workspace.mkdir()
    prepare(workspace)
    for settings in workspace.glob("packages/*/pyproject.toml"):
        text = re.sub(r'^version = ".*"$', f'version = "{BEFORE}"', settings.read_text("utf-8"), flags=re.MULTILINE)
        settings.write_text(re.sub(r'("cc-[a-z-]+(?:\[[a-z,]+\])?)>=[0-9.]+,', rf"\1>={BEFORE},", text), "utf-8")
    before = folder / "before"
    await run([*find_uv(), "build", "--all-packages", "--wheel", f"--out-dir={before}"], workspace)
    return [*before.glob("*.whl")]


async def publish(index: Path, wheels: Sequence[Path], *, yanked: str = "") -> None:
    """Write an index with these wheels; those that have a `yanked` version in their name are yanked."""
    files = index / "files"
    files.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    for wheel in wheels:
        shutil.copy(wheel, files)
        reason = "rehearsed" if yanked and f"-{yanked}-" in wheel.name else None
        lines.append(json.dumps({"filename": wheel.name, "yanked_reason": reason, "requires_python": ">=3.11"}))
    packages = index / "packages.json"
    packages.write_text("\n".join(lines), encoding="utf-8")
    generate = [*find_uv(), "tool", "run", "--quiet", "dumb-pypi", f"--package-list-json={packages}"]
    await run([*generate, f"--output-dir={index}", "--packages-url=../../files/"], index)


def versions(folder: Path) -> dict[str, str]:
    """Return the versions of our distributions in the environment that a folder has."""
    [site] = folder.glob("venv/lib/python*/site-packages")
    return {found.name: found.version for found in distributions(path=[str(site)]) if found.name in NAMES}


def expect(step: str, folder: Path, version: str) -> None:
    found = versions(folder)
    if "cc-model" not in found or {*found.values()} != {version}:
        raise CheckError(f"{step}: expected {version} of all, and got {found}")
    print(f"{step}: {len(found)} packages with version {version}", flush=True)


async def rehearse() -> list[str]:
    if problems := await build():
        return problems
    release = [*DIST.glob("*.whl")]
    [version] = {wheel.name.split("-")[1] for wheel in release}
    with temporary_folder() as name, served(Path(name) / "index") as address:
        folder = Path(name)
        index, old, new, pinned = (folder / part for part in ("index", "old", "new", "pinned"))
        for environment in (old, new, pinned):
            environment.mkdir()
        before = await build_before(folder)
        await publish(index, before)
        python = await create_empty(old, sys.executable)
        # By pip itself, as a user would.
        pip = [*find_uv(), "tool", "run", "--quiet", "pip", f"--python={python}", "install", "--quiet", "--no-compile"]
        await run([*pip, f"--extra-index-url={address}", "cc-model"], folder)
        expect("pip install cc-model", old, BEFORE)
        await publish(index, [*before, *release])
        await run([*pip, "--upgrade", f"--extra-index-url={address}", "cc-model"], folder)
        expect("pip install --upgrade cc-model", old, version)
        await run([f"{old}/venv/bin/cc-model", "--version"], folder)
        await publish(index, [*before, *release], yanked=version)
        uv = [*find_uv(), "pip", "install", "--quiet", "--refresh", f"--index={address}"]
        await run([*uv, f"--python={await create_empty(new, sys.executable)}", "cc-model"], folder)
        expect("install after the yank", new, BEFORE)
        wanted = [f"{name}=={version}" for name in versions(old)]
        await run([*uv, f"--python={await create_empty(pinned, sys.executable)}", *wanted], folder)
        expect("install with yanked pins", pinned, version)
    return []


def main() -> int:
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    return finish(rehearse())


if __name__ == "__main__":
    sys.exit(main())
