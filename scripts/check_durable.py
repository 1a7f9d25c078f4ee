#!/usr/bin/env python3
"""Run the agent under the durable engines, on servers that are started for it.

The engines bring a hundred libraries and several servers, so they stay out of the workspace's environment. This script
creates another outside the repository: the packages from here, the engines with the pins in
`integration-tests/durable/engines.txt`, all else as pinned by the workspace. It runs the tests in
`integration-tests/durable`, and the type checker over them and over `examples/durable`. With `--collect` it only
creates the environment and collects the tests.

Without a connection to an index, nothing is checked, and the output says so.
"""

import argparse
import json
import re
import sys
from functools import partial
from pathlib import Path

from check_alone import strangers
from commands import CheckError, check_each, create, finish, run, temporary_folder, type_check
from pin import resolve
from workspace import ROOT, find_uv, read_members, required_name, workspace_pins

TESTS, EXAMPLES = ROOT / "integration-tests" / "durable", ROOT / "examples" / "durable"
OVERRIDES = TESTS / "overrides.txt"

# Required by the workspace's pytest settings and fixtures, which are used here too.
TOOLS = ("anyio", "hypothesis", "psutil", "pyright[nodejs]", "pytest", "pytest-timeout", "pytest-xdist")

ENGINES = ("dbos-sqlite", "dbos-postgres", "temporal", "prefect")
PINS = TESTS / "engines.txt"

# A test starts up to five interpreters that load all the libraries, which takes a minute each on a very busy machine.
TEST_SECONDS = 600

# uv's messages for an unreachable index; a missing version in an index is a different failure.
UNREACHABLE = re.compile(r"dns error|error sending request|tcp connect error|network is unreachable", re.IGNORECASE)


def read_requirements(path: Path) -> list[str]:
    lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line]


def merged(workspace: list[str], engines: list[str]) -> list[str]:
    """Return the pins in effect: all for the engines, and the workspace's for other names."""
    names = {required_name(pin) for pin in engines}
    return [*(pin for pin in workspace if required_name(pin) not in names), *engines]


async def install(folder: Path, path: Path) -> str:
    """Create an environment with the pins in a file; return the interpreter."""
    pins = merged(workspace_pins(), read_requirements(path))
    wanted = [*map(str, read_members()), f"--requirements={path}", *TOOLS]
    python = await create(folder, wanted, pins, read_requirements(OVERRIDES))
    listed = await run([*find_uv(), "pip", "list", "--quiet", "--format=json", f"--python={python}"], folder)
    installed = {required_name(entry["name"]): entry["version"] for entry in json.loads(listed)}
    if problems := strangers("", installed, pins, [path.name for path in read_members()]):
        raise CheckError("\n".join(problems))
    return python


async def check(folder: Path, engines: list[str], *, collect: bool) -> list[str]:
    try:
        python = await install(folder, PINS)
    except CheckError as error:
        if not UNREACHABLE.search(str(error)):
            raise
        print("SKIPPED: no package index can be reached, so the engines cannot be installed.")
        return []
    # Without parallel tests: each starts enough processes.
    pytest = [python, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "-q", "-o", f"timeout={TEST_SECONDS}"]
    if collect:
        return await check_each({"tests": partial(run, [*pytest, "--co", str(TESTS)], ROOT)})
    imported = [ROOT / "integration-tests" / "support", EXAMPLES, TESTS / "apps"]
    commands = {"types": type_check(folder, python, [TESTS, EXAMPLES], extraPaths=[*map(str, imported)])}
    choices = {engine: engine for engine in engines} | {"no engine": f"not ({' or '.join(ENGINES)})"}
    commands |= {name: [*pytest, "-k", choice, str(TESTS)] for name, choice in choices.items()}
    return await check_each({name: partial(run, command, ROOT) for name, command in commands.items()})


def write_pins(path: Path) -> None:
    """Write new pins to a file: the newest versions that are compatible with the packages and the tools."""
    wanted = read_requirements(path.with_suffix(".in"))
    # Names in both files stay free: there the engines need another version than the workspace.
    replaced = {required_name(pin) for pin in [*read_requirements(path), *(line for line in wanted if "==" in line)]}
    pins = [pin for pin in workspace_pins() if required_name(pin) not in replaced]
    overrides = f"--overrides={OVERRIDES}"
    shared = resolve(TOOLS, pins, overrides, *(f"{path}/pyproject.toml" for path in read_members()))
    limits = [pin for pin in shared if required_name(pin) not in replaced]
    names = {required_name(pin) for pin in limits}
    engines = resolve(wanted, limits, overrides)
    added = [pin for pin in engines if required_name(pin) not in names]
    path.write_text("\n".join(["# Written by scripts/check_durable.py --pin.", *added, ""]), encoding="utf-8")
    print(f"{len(added)} pins in {path.name}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the agent under the durable engines, on real servers.")
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"of {', '.join(ENGINES)} (default: all)")
    parser.add_argument("--collect", action="store_true", help="create the environment and collect the tests, no more")
    parser.add_argument("--pin", action="store_true", help="write new pins for the engines, without checks")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.engines) - set(ENGINES)):
        parser.error(f"unknown engine: {', '.join(unknown)}")
    if arguments.pin:
        write_pins(PINS)
        return 0
    with temporary_folder() as name:
        return finish(check(Path(name).resolve(), arguments.engines or [*ENGINES], collect=arguments.collect))


if __name__ == "__main__":
    sys.exit(main())
