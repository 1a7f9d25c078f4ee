#!/usr/bin/env python3
"""Run the agent under DBOS, Temporal and Prefect, on servers of theirs that are started for it.

The engines bring eighty libraries and three servers, so they stay out of the workspace's environment. This makes one
outside the repository: the packages as wheels that were built here, the engines in the versions that
`integration-tests/durable/engines.txt` pins, all else as the workspace pins it. In it run the tests of
`integration-tests/durable`, and the type checker over them and over `examples/durable`.

Where no index can be reached, nothing is checked, and that is said.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Coroutine
from pathlib import Path

from check_packages import TEST_TOOLS, Bench, build, check_installed, list_installed
from commands import CheckError, run
from pin import Pins, read_pins
from workspace import ROOT, find_uv, read_members, required_name, siblings

TESTS = ROOT / "integration-tests" / "durable"
EXAMPLES = ROOT / "examples" / "durable"
PINS = TESTS / "engines.txt"
OVERRIDES = TESTS / "overrides.txt"

MEMBERS = ("cc-model", "cc-loopback")
# The workspace's settings of pytest, which hold here too, want the last one.
TOOLS = (*TEST_TOOLS, "psutil", "pyright[nodejs]", "pytest-xdist")

ENGINES = ("dbos-sqlite", "dbos-postgres", "temporal", "prefect")

# A test starts up to five interpreters that load all the libraries, which takes a minute each on a very busy machine.
TEST_SECONDS = 600

# What pytest returns when no test was chosen.
NO_TEST = "exit code 5"

# How uv says that there is no way to an index; that an index lacks a version is another matter.
UNREACHABLE = re.compile(r"dns error|error sending request|tcp connect error|network is unreachable", re.IGNORECASE)


def read_requirements(path: Path) -> list[str]:
    """Return the lines of a requirements file that require something."""
    lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line]


def merged(workspace: list[str], engines: list[str]) -> list[str]:
    """Return the pins that hold here: those of the engines, and of the workspace what is not among them."""
    names = {required_name(pin) for pin in engines}
    return [*(pin for pin in workspace if required_name(pin) not in names), *engines]


def make_bench(folder: Path) -> Bench:
    """Return what all steps share."""
    pins = read_pins((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    both = Pins(merged(pins.workspace, read_requirements(PINS)), pins.build)
    bench = Bench(folder, read_members(), both, sys.executable, asyncio.Semaphore(2))
    bench.constraints.write_text("\n".join(both.workspace), encoding="utf-8")
    bench.build_constraints.write_text("\n".join(both.build), encoding="utf-8")
    return bench


async def install(bench: Bench) -> Path:
    """Make the environment; return its interpreter."""
    needed = sorted(siblings(bench.members, MEMBERS))
    async with asyncio.TaskGroup() as group:
        for name in needed:
            group.create_task(build(bench, bench.members[name]))
    environment = bench.folder / "venv"
    await run(
        [*bench.uv, "venv", "--quiet", "--no-project", f"--python={bench.python}", str(environment)], bench.folder
    )
    options = [
        f"--python={environment}",
        # Else each of the many interpreters would compile the same libraries again, where they may not leave a trace.
        "--compile-bytecode",
        f"--constraints={bench.constraints}",
        f"--overrides={OVERRIDES}",
        f"--requirements={PINS}",
    ]
    wheels = [str(bench.wheel(name)) for name in needed]
    await run([*bench.uv, "pip", "install", *options, *wheels, *TOOLS], bench.folder)
    python = environment / "bin" / "python"
    check_installed(await list_installed(python, bench.folder), bench)
    return python


async def check_types(python: Path, folder: Path) -> str:
    """Run the type checker where it finds the engines, which that of the workspace does not."""
    path = folder / "pyrightconfig.json"
    path.write_text(json.dumps(type_settings(folder)), encoding="utf-8")
    return await run([str(python), "-m", "pyright", f"--project={path}", f"--pythonpath={python}"], folder)


def type_settings(folder: Path) -> dict[str, object]:
    """Return the settings of the type checker, for a file in `folder`; it takes no absolute paths there."""
    tests, examples = (os.path.relpath(path, folder) for path in (TESTS, EXAMPLES))
    return {
        "include": [tests, examples],
        "executionEnvironments": [
            {"root": f"{tests}/apps"},
            {"root": examples},
            {"root": f"{tests}/..", "extraPaths": [f"{tests}/../support"]},
        ],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
    }


async def run_tests(bench: Bench, python: Path, module: Path, engine: str) -> str:
    """Run the tests of one module with one engine, one after the other: each starts enough processes."""
    options = ["-p", "no:cacheprovider", "-n", "0", "-q", "-o", f"timeout={TEST_SECONDS}", "-k", engine]
    async with bench.slots:
        try:
            output = await run([str(python), "-m", "pytest", *options, str(module)], ROOT)
        except CheckError as error:
            if not str(error).startswith(NO_TEST):
                raise
            return f"{module.stem}, {engine}: none"
    return f"{module.stem}, {engine}: {last_line(output)}"


def last_line(output: str) -> str:
    """Return the last line of what a command wrote."""
    return output.rstrip().rpartition("\n")[2]


async def check(folder: Path, engines: list[str]) -> list[str]:
    """Make the environment and run all checks in it; return what went wrong."""
    bench = make_bench(folder)
    python = await install(bench)
    print(f"types: {last_line(await check_types(python, folder))}")
    # Those that are for no engine in particular, too.
    choices = [*engines, f"not ({' or '.join(ENGINES)})"]
    runs = [(module, choice) for choice in choices for module in sorted(TESTS.glob("test_*.py"))]
    failed: list[str] = []
    for done in asyncio.as_completed([run_tests(bench, python, module, choice) for module, choice in runs]):
        try:
            print(await done, flush=True)
        except CheckError as error:
            failed.append(str(error))
    return failed


async def write_pins(folder: Path) -> list[str]:
    """Write the pins of the engines anew: the newest versions that go with what the packages and the tools have."""
    workspace = read_pins((ROOT / "pyproject.toml").read_text(encoding="utf-8")).workspace
    members = read_members()
    needs = [need for name in siblings(members, MEMBERS) for need in members[name].requires]
    (wanted := folder / "wanted.in").write_text(
        "\n".join([*(need for need in needs if required_name(need) not in members), *TOOLS]), encoding="utf-8"
    )
    shared = await resolve(wanted, workspace, folder)
    engines = await resolve(PINS.with_suffix(".in"), shared, folder)
    names = {required_name(pin) for pin in shared}
    added = [pin for pin in engines if required_name(pin) not in names]
    PINS.write_text("\n".join(["# Written by scripts/check_durable.py --pin.", *added, ""]), encoding="utf-8")
    print(f"{len(added)} pins for the engines")
    return []


async def resolve(wanted: Path, constraints: list[str], folder: Path) -> list[str]:
    """Return the pins of all that a file of requirements leads to, on every platform."""
    (bounds := folder / "constraints.txt").write_text("\n".join(constraints), encoding="utf-8")
    options = [f"--constraints={bounds}", f"--overrides={OVERRIDES}", "--universal", "--python-version=3.11"]
    output = ["--no-header", "--no-annotate", "--quiet", f"--output-file={folder / 'resolved.txt'}"]
    await run([*find_uv(), "pip", "compile", str(wanted), *options, *output], folder)
    return read_requirements(folder / "resolved.txt")


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description="Run the agent under the durable engines, on real servers.")
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"of {', '.join(ENGINES)} (default: all)")
    parser.add_argument("--pin", action="store_true", help="write the pins of the engines anew, and check nothing")
    arguments = parser.parse_args(words)
    if unknown := sorted(set(arguments.engines) - set(ENGINES)):
        parser.error(f"no such engine: {', '.join(unknown)}")
    return arguments


async def until_signalled(work: Coroutine[None, None, list[str]]) -> list[str]:
    """Do the work, and cancel it when someone (SIGINT) or something (SIGTERM) wants it to stop."""
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await task


def main() -> int:
    """Run the command; return its exit code."""
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        work = write_pins(folder) if arguments.pin else check(folder, arguments.engines or [*ENGINES])
        try:
            failed = asyncio.run(until_signalled(work))
        except asyncio.CancelledError:
            print("interrupted", file=sys.stderr)
            return 130
        except CheckError as error:
            if UNREACHABLE.search(str(error)):
                print("SKIPPED: no package index can be reached, so the engines cannot be installed.")
                return 0
            failed = [str(error)]
    for one in failed:
        print(f"\n--- {one}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
