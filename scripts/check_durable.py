#!/usr/bin/env python3
"""Run the agent under DBOS, Temporal and Prefect, on servers of theirs that are started for it.

The engines bring eighty libraries and three servers, so they stay out of the workspace's environment. This makes one
outside the repository: the packages as they are here, the engines in the versions that
`integration-tests/durable/engines.txt` pins, all else as the workspace pins it. In it run the tests of
`integration-tests/durable`, and the type checker over them and over `examples/durable`.

Where no index can be reached, nothing is checked, and that is said.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from functools import partial
from pathlib import Path

from check_alone import strangers
from commands import CheckError, check_each, finish, run
from pin import resolve
from workspace import ROOT, find_uv, read_members, read_toml, required_name

TESTS = ROOT / "integration-tests" / "durable"
EXAMPLES = ROOT / "examples" / "durable"
PINS = TESTS / "engines.txt"
OVERRIDES = TESTS / "overrides.txt"

# The workspace's settings of pytest, which hold here too, want the last one.
TOOLS = ("anyio", "psutil", "pyright[nodejs]", "pytest", "pytest-timeout", "pytest-xdist")

ENGINES = ("dbos-sqlite", "dbos-postgres", "temporal", "prefect")

# A test starts up to five interpreters that load all the libraries, which takes a minute each on a very busy machine.
TEST_SECONDS = 600

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


async def install(folder: Path) -> str:
    """Make the environment; return its interpreter."""
    settings = read_toml(ROOT / "pyproject.toml")["tool"]["uv"]
    pins = merged(settings["constraint-dependencies"], read_requirements(PINS))
    for name, lines in (("constraints.txt", pins), ("build.txt", settings["build-constraint-dependencies"])):
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    python = str(folder / "venv" / "bin" / "python")
    await run([*find_uv(), "venv", "--quiet", "--no-project", f"--python={sys.executable}", "venv"], folder)
    # Compiled: else each of the many interpreters would do that again, where they may not leave a trace. Refreshed: uv
    # does not look whether a source of the packages has changed.
    options = [
        f"--python={python}",
        "--compile-bytecode",
        *(f"--refresh-package={path.name}" for path in read_members()),
    ]
    limits = ["--constraints=constraints.txt", "--build-constraints=build.txt", f"--overrides={OVERRIDES}"]
    wanted = [*map(str, read_members()), f"--requirements={PINS}", *TOOLS]
    await run([*find_uv(), "pip", "install", *options, *limits, *wanted], folder)
    listed = json.loads(
        await run([*find_uv(), "pip", "list", "--quiet", "--format=json", f"--python={python}"], folder)
    )
    installed = {required_name(one["name"]): one["version"] for one in listed}
    if problems := strangers("", installed, pins, [path.name for path in read_members()]):
        raise CheckError("\n".join(problems))
    return python


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


async def check(folder: Path, engines: list[str]) -> list[str]:
    """Make the environment and run all checks in it; return what went wrong."""
    try:
        python = await install(folder)
    except CheckError as error:
        if not UNREACHABLE.search(str(error)):
            raise
        print("SKIPPED: no package index can be reached, so the engines cannot be installed.")
        return []
    settings = folder / "pyrightconfig.json"
    settings.write_text(json.dumps(type_settings(folder)), encoding="utf-8")
    commands = {"types": [python, "-m", "pyright", f"--project={settings}", f"--pythonpath={python}"]}
    # One test after the other: each starts enough processes. Those for no engine in particular come, too.
    options = ["-p", "no:cacheprovider", "-n", "0", "-q", "-o", f"timeout={TEST_SECONDS}"]
    for name, choice in [*((engine, engine) for engine in engines), ("no engine", f"not ({' or '.join(ENGINES)})")]:
        commands[name] = [python, "-m", "pytest", *options, "-k", choice, str(TESTS)]
    return await check_each({name: partial(run, command, ROOT) for name, command in commands.items()})


def write_pins() -> None:
    """Write the pins of the engines anew: the newest versions that go with what the packages and the tools have."""
    pins: list[str] = read_toml(ROOT / "pyproject.toml")["tool"]["uv"]["constraint-dependencies"]
    overrides = f"--overrides={OVERRIDES}"
    shared = resolve(TOOLS, pins, overrides, *(f"{path}/pyproject.toml" for path in read_members()))
    engines = resolve(read_requirements(PINS.with_suffix(".in")), shared, overrides)
    names = {required_name(pin) for pin in shared}
    added = [pin for pin in engines if required_name(pin) not in names]
    PINS.write_text("\n".join(["# Written by scripts/check_durable.py --pin.", *added, ""]), encoding="utf-8")
    print(f"{len(added)} pins for the engines")


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description="Run the agent under the durable engines, on real servers.")
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"of {', '.join(ENGINES)} (default: all)")
    parser.add_argument("--pin", action="store_true", help="write the pins of the engines anew, and check nothing")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.engines) - set(ENGINES)):
        parser.error(f"no such engine: {', '.join(unknown)}")
    if arguments.pin:
        return write_pins() or 0
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as name:
        return finish(check(Path(name).resolve(), arguments.engines or [*ENGINES]))


if __name__ == "__main__":
    sys.exit(main())
