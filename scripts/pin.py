#!/usr/bin/env python3
"""Pin the exact version for every distribution that the workspace installs or builds with, using `uv pip compile`.

The pins are lines in the root `pyproject.toml`, between two marker comments: a block in `constraint-dependencies` for
the whole closure (every member, group, extra and platform), and a block in `build-constraint-dependencies` for the
packages' build tools. They contain names and versions only, no index, address or hash, so that they are valid for every
index; for this reason they are in git and `uv.lock` is not.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from commands import CheckError
from workspace import ROOT, find_uv, read_members, read_toml, required_name

EXIT_DIFFERENT = 1
EXIT_NO_SOLUTION = 2

# The blocks, and the uv setting that contains each.
BLOCKS = {"workspace": "constraint-dependencies", "build": "build-constraint-dependencies"}


class PinError(CheckError):
    """The pins cannot be read, or no versions satisfy them; the message says how to fix it."""


def replace_block(text: str, block: str, pins: Iterable[str]) -> tuple[str, list[str]]:
    """Return `text` with other pins between the markers for `block`, and the previous pins."""
    begin, end = f"# pins of the {block}: begin", f"# pins of the {block}: end"
    blocks = re.findall(rf"(?s){begin}[^\n]*\n(.*?) *{end}\n", text)
    if len(blocks) != 1 or text.count(begin) != 1 or text.count(end) != 1:
        raise PinError(f"pyproject.toml needs the comments {begin!r} and {end!r}, once each, in this order")
    first = text.index("\n", text.index(begin)) + 1
    lines = "".join(f'    "{pin}",\n' for pin in pins)
    return text[:first] + lines + text[first + len(blocks[0]) :], re.findall(r'"(.+)",', blocks[0])


def differences(block: str, old: Iterable[str], new: Iterable[str]) -> list[str]:
    """Return a line for each version that only `old` (-) or only `new` (+) has."""
    # Without the markers: uv writes the same fork differently once it resolves with pins.
    before, after = ([pin.partition(" ;")[0] for pin in pins] for pins in (old, new))
    return [
        *(f"{block}: - {version}" for version in before if version not in after),
        *(f"{block}: + {version}" for version in after if version not in before),
    ]


def unmarked(pins: list[str]) -> list[str]:
    """Return the pins, with environment markers only where a name has several versions."""
    versions = Counter(map(required_name, pins))
    return [pin if versions[required_name(pin)] > 1 else pin.partition(" ;")[0] for pin in pins]


def compile_pins(wanted: Iterable[str], constraints: Iterable[str], *options: str) -> str:
    """Return the requirements file for `wanted` and all that they require, on every platform.

    uv runs in a temporary folder: in the workspace the existing pins would apply in addition to `constraints`.

    Raises:
        PinError: No versions satisfy them.
    """
    python = read_toml(ROOT / "pyproject.toml")["project"]["requires-python"].removeprefix(">=")
    with tempfile.TemporaryDirectory(prefix="cc-pin-") as folder:
        for name, lines in (("wanted.in", wanted), ("constraints.txt", constraints)):
            Path(folder, name).write_text("\n".join(lines), encoding="utf-8")
        command = [*find_uv(), "pip", "compile", "--quiet", "--universal", f"--python-version={python}"]
        output = ["--no-header", "--no-annotate", "--constraints=constraints.txt", "wanted.in"]
        done = subprocess.run(
            [*command, *output, *options], cwd=folder, capture_output=True, text=True, check=False, timeout=600
        )
    if done.returncode:
        raise PinError(f"uv finds no compatible versions:\n{done.stderr.rstrip()}")
    return done.stdout


def select_pins(requirements: str) -> list[str]:
    """Return the pins in a requirements file, without hashes and without members that appear as a folder."""
    return re.findall(r"^([\w.-]+==.*?)(?: \\)?$", requirements, flags=re.MULTILINE)


def resolve(wanted: Iterable[str], constraints: Iterable[str], *options: str) -> list[str]:
    """Return the pins for `wanted` and all that they require, on every platform."""
    return select_pins(compile_pins(wanted, constraints, *options))


def resolve_block(block: str, constraints: list[str]) -> list[str]:
    """Return the correct pins in a block, under some constraints."""
    members = read_members()
    if block == "build":
        needs = {need for table in members.values() for need in table["build-system"]["requires"]}
        return unmarked(resolve(needs, constraints))
    tables = {ROOT: read_toml(ROOT / "pyproject.toml"), **members}
    files = {f"{path}/pyproject.toml": table.get("dependency-groups", ()) for path, table in tables.items()}
    groups = [f"--group={file}:{name}" for file, names in files.items() for name in names]
    return unmarked(resolve([], constraints, "--all-extras", *groups, *files))


def refresh(released: set[str] | None, *, check: bool = False) -> int:
    """Write new pins, or only compare them, and return the exit code; free the pins of `released` (None: of all)."""
    path = ROOT / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    changes: list[str] = []
    for block, setting in BLOCKS.items():
        _, old = replace_block(text, block, ())
        limits: list[str] = tomllib.loads(text)["tool"]["uv"][setting]
        stay = [pin for pin in old if released is not None and required_name(pin) not in released]
        new = resolve_block(block, [limit for limit in limits if limit not in old or limit in stay])
        changes += differences(block, old, new)
        text, _ = replace_block(text, block, new)
    print("\n".join(changes or ["The pins are up to date."]))
    if not check:
        path.write_text(text, encoding="utf-8")
    elif changes:
        print("These pins (-) differ from uv's choice (+). Run scripts/pin.py to update them.")
        return EXIT_DIFFERENT
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Write the exact versions of the whole closure into the root pyproject.toml. "
        "Without an option, pins that still fit stay as they are."
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="change nothing; exit 1 if the pins are not up to date")
    choice.add_argument(
        "--upgrade", nargs="*", metavar="NAME", help="take the newest versions, for these names or for all"
    )
    arguments = parser.parse_args()
    names = {required_name(name) for name in arguments.upgrade or ()}
    try:
        return refresh(None if arguments.upgrade == [] else names, check=arguments.check)
    except PinError as error:
        print(error)
        print("If a pin prevents a solution, release it: scripts/pin.py --upgrade NAME ...")
        return EXIT_NO_SOLUTION


if __name__ == "__main__":
    sys.exit(main())
