#!/usr/bin/env python3
"""Prove that each package works by itself: build it, install it alone, run its own tests there.

Alone means: a fresh environment outside the repository, the wheels that were built here, and from the index only what
those wheels ask for, in the pinned versions. The tests are a copy too, so nothing of the workspace can be imported.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commands import CheckError, run
from pin import Pins, read_pins
from workspace import ROOT, Member, find_uv, normalized, read_members, read_toml, required_name, siblings

TEST_TOOLS = ("anyio", "hypothesis", "pytest", "pytest-timeout")

SDK = "claude-agent-sdk"
# The SDK's wheel holds the whole CLI (157 MB): what only knows its objects by shape must not pull it.
WITHOUT_SDK = ("cc-types", "cc-convert", "cc-ipc", "cc-loopback")

# The root's choices that make no sense for one package: where tests are, and to spread them over the processors.
ROOT_ONLY = ("addopts", "pythonpath", "testpaths")

LIST_INSTALLED = """
import importlib.metadata, json
print(json.dumps([
    {"name": found.metadata["Name"], "version": found.version, "origin": found.read_text("direct_url.json")}
    for found in importlib.metadata.distributions()
]))
"""


@dataclass(frozen=True)
class Installed:
    """One distribution in an environment."""

    name: str
    version: str
    origin: dict[str, Any] | None
    """What `direct_url.json` says; None for what came from an index."""


@dataclass
class Result:
    """What the checks of one package found."""

    name: str
    wheel_bytes: int = 0
    installed: int = 0
    tests: str = ""
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Bench:
    """What the checks of all packages share."""

    folder: Path
    members: dict[str, Member]
    pins: Pins
    python: str
    slots: asyncio.Semaphore
    is_quick: bool = False
    root: Path = ROOT
    uv: list[str] = field(default_factory=find_uv)

    @property
    def dist(self) -> Path:
        """Where the built wheels are."""
        return self.folder / "dist"

    @property
    def constraints(self) -> Path:
        """A file with the versions that may be installed."""
        return self.folder / "constraints.txt"

    @property
    def build_constraints(self) -> Path:
        """A file with the versions that may build."""
        return self.folder / "build-constraints.txt"

    def wheel(self, name: str) -> Path:
        """Return the wheel that was built of a member."""
        found = list(self.dist.glob(f"{self.members[name].module}-*.whl"))
        if len(found) != 1:
            raise CheckError(f"{name} has {len(found)} wheels in the place of one")
        return found[0]


# --- building


async def build(bench: Bench, member: Member) -> None:
    """Build the sdist of a member, and its wheel from that sdist."""
    async with bench.slots:
        await run(
            [
                *bench.uv,
                "build",
                f"--package={member.name}",
                f"--out-dir={bench.dist}",
                f"--build-constraints={bench.build_constraints}",
            ],
            bench.root,
        )
    check_wheel(bench.wheel(member.name), member.module)


def check_wheel(wheel: Path, module: str) -> None:
    """Raise `CheckError` if the wheel lacks what a typed, licensed package has."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    if f"{module}/py.typed" not in names:
        raise CheckError(f"{wheel.name} has no py.typed")
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        raise CheckError(f"{wheel.name} has no LICENSE")


# --- installing


async def install(bench: Bench, environment: Path, requirements: Iterable[str]) -> None:
    """Install `requirements` into an environment; a member's name stands for its wheel and those it needs."""
    asked = tuple(requirements)
    # The wheels are named one by one, never looked up: an index may have a package of the same name.
    wheels = [str(bench.wheel(name)) for name in sorted(siblings(bench.members, asked))]
    others = [requirement for requirement in asked if required_name(requirement) not in bench.members]
    await run(
        [
            *bench.uv,
            "pip",
            "install",
            "--strict",
            f"--python={environment}",
            f"--constraints={bench.constraints}",
            *wheels,
            *others,
        ],
        bench.folder,
    )


async def list_installed(python: Path, cwd: Path) -> list[Installed]:
    """Return the distributions that an environment holds."""
    found = json.loads(await run([str(python), "-I", "-c", LIST_INSTALLED], cwd))
    return [
        Installed(normalized(one["name"]), one["version"], json.loads(one["origin"]) if one["origin"] else None)
        for one in found
    ]


def check_installed(installed: list[Installed], bench: Bench, *, without: Iterable[str] = ()) -> None:
    """Raise `CheckError` if something is there that should not be, or is not what was built or pinned."""
    pinned = {required_name(pin) for pin in bench.pins.workspace}
    for one in installed:
        if one.name in without:
            raise CheckError(f"{one.name} was installed too")
        if one.name in bench.members:
            expected = bench.wheel(one.name).as_uri()
            if one.origin is None or one.origin["url"] != expected:
                raise CheckError(f"{one.name} comes from {one.origin or 'an index'}, not from {expected}")
        elif one.origin is not None:
            raise CheckError(f"{one.name} comes from {one.origin['url']}, not from an index")
        elif one.name not in pinned:
            raise CheckError(f"{one.name} {one.version} has no pin: run scripts/pin.py")


# --- testing


def strict_settings(root: Path) -> str:
    """Return a pytest.toml as strict as the workspace's, for one package."""
    settings: dict[str, Any] = read_toml(root / "pyproject.toml")["tool"]["pytest"]
    kept = {key: value for key, value in settings.items() if key not in ROOT_ONLY}
    kept["addopts"] = ["--import-mode=importlib"]
    # JSON's strings, numbers, booleans and lists are TOML's.
    return "[pytest]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in kept.items())


async def run_tests(bench: Bench, member: Member, python: Path, home: Path) -> str:
    """Run a copy of the package's tests and return what to show of the outcome."""
    if not (member.path / "tests").is_dir():
        raise CheckError(f"{member.name} has no tests")
    copy = home / "packages" / member.name / "tests"
    shutil.copytree(member.path / "tests", copy, ignore=shutil.ignore_patterns("__pycache__"))
    # Tests prove what the pages say, so these go along.
    for page in member.path.glob("*.md"):
        shutil.copy(page, copy.parent)
    (home / "pytest.toml").write_text(strict_settings(bench.root), encoding="utf-8")
    report = home / "report.xml"
    await run(
        [
            str(python),
            "-m",
            "pytest",
            str(copy.relative_to(home)),
            "-p",
            "no:cacheprovider",
            "--config-file=pytest.toml",
            f"--basetemp={home / 't'}",
            f"--junitxml={report}",
            "-q",
            *(["-m", "not slow"] if bench.is_quick else []),
        ],
        home,
    )
    return summary(report.read_text(encoding="utf-8"))


def summary(report: str) -> str:
    """Return the counts of a JUnit report in words."""
    # Not an attack surface: pytest wrote the report a moment ago.
    suites = ElementTree.fromstring(report).iter("testsuite")
    counts = [(int(suite.get("tests", 0)), int(suite.get("skipped", 0))) for suite in suites]
    total, skipped = sum(count for count, _ in counts), sum(count for _, count in counts)
    return f"{total - skipped} passed" + (f", {skipped} skipped" if skipped else "")


# --- one package


async def check_alone(bench: Bench, member: Member, result: Result) -> None:
    """Install a package alone, look at what came with it, and run its tests."""
    home = bench.folder / member.name
    home.mkdir()
    environment = home / "venv"
    python = environment / "bin" / "python"
    await run([*bench.uv, "venv", "--quiet", "--no-project", f"--python={bench.python}", str(environment)], home)
    await install(bench, environment, [member.name])
    installed = await list_installed(python, home)
    check_installed(installed, bench, without=[SDK] if member.name in WITHOUT_SDK else [])
    result.wheel_bytes = bench.wheel(member.name).stat().st_size
    result.installed = len(installed)
    # Before the test tools come: what the package imports has to be among what it requires.
    await run([str(python), "-I", "-W", "error", "-c", f"import {member.module}"], home)
    await install(bench, environment, [member.name, *TEST_TOOLS, *member.test_requires])
    check_installed(await list_installed(python, home), bench)
    result.tests = await run_tests(bench, member, python, home)
    shutil.rmtree(home)


async def check_package(bench: Bench, member: Member, unbuilt: str | None) -> Result:
    """Do all checks of one package; a failure is part of the result."""
    result = Result(member.name)
    async with bench.slots:
        started = time.monotonic()
        try:
            if unbuilt is not None:
                raise CheckError(unbuilt)
            await check_alone(bench, member, result)
        except CheckError as error:
            result.error = str(error)
        result.seconds = time.monotonic() - started
    print(f"{member.name}: {'failed' if result.error else 'ok'}", file=sys.stderr)
    return result


async def try_build(bench: Bench, member: Member) -> str | None:
    """Build a package; return what went wrong."""
    try:
        await build(bench, member)
    except CheckError as error:
        return str(error)
    return None


async def check_all(bench: Bench, names: list[str]) -> list[Result]:
    """Build the named packages and all that they need, then check the named ones."""
    bench.constraints.write_text("\n".join(bench.pins.workspace), encoding="utf-8")
    bench.build_constraints.write_text("\n".join(bench.pins.build), encoding="utf-8")
    tests_need = [requirement for name in names for requirement in bench.members[name].test_requires]
    needed = [bench.members[name] for name in sorted(siblings(bench.members, (*names, *tests_need)))]
    async with asyncio.TaskGroup() as group:
        builds = {member.name: group.create_task(try_build(bench, member)) for member in needed}
    async with asyncio.TaskGroup() as group:
        checks = [group.create_task(check_package(bench, bench.members[name], builds[name].result())) for name in names]
    return [check.result() for check in checks]


# --- the command


def table(results: list[Result]) -> str:
    """Return the results as lines of text, in columns."""
    rows = [("package", "wheel", "installed", "tests", "seconds")]
    rows += [
        (
            result.name,
            f"{result.wheel_bytes / 1000:.0f} kB",
            str(result.installed),
            "FAILED" if result.error else result.tests,
            f"{result.seconds:.1f}",
        )
        for result in results
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def parse_arguments(members: Iterable[str], words: list[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description="Build, install alone and test each package of the workspace.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="packages to check (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at the same time (default: 2)")
    parser.add_argument("--quick", action="store_true", help="leave out tests marked as slow")
    parser.add_argument("--python", default=sys.executable, help="interpreter or version (default: this one)")
    arguments = parser.parse_args(words)
    if unknown := sorted(set(arguments.names) - set(members)):
        parser.error(f"no such package: {', '.join(unknown)}")
    if arguments.jobs < 1:
        parser.error("--jobs must be 1 or more")
    return arguments


async def until_signalled(work: Coroutine[None, None, list[Result]]) -> list[Result]:
    """Do the work, and cancel it when someone (SIGINT) or something (SIGTERM) wants it to stop."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await task


def check_workspace(names: list[str], arguments: argparse.Namespace) -> list[Result]:
    """Check packages in a folder that is gone afterwards, however this ends."""
    pins = read_pins((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as folder:
        # Resolved: uv notes where a wheel came from without the symbolic links that /tmp may be behind.
        bench = Bench(
            Path(folder).resolve(),
            read_members(),
            pins,
            arguments.python,
            asyncio.Semaphore(arguments.jobs),
            arguments.quick,
        )
        return asyncio.run(until_signalled(check_all(bench, names)))


def main() -> int:
    """Run the command; return its exit code."""
    members = list(read_members())
    arguments = parse_arguments(members)
    try:
        results = check_workspace(arguments.names or members, arguments)
    except asyncio.CancelledError:
        print("interrupted", file=sys.stderr)
        return 130
    failed = [result for result in results if result.error]
    for result in failed:
        print(f"\n--- {result.name}\n{result.error}\n")
    print(table(results))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
