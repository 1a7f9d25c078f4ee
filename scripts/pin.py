#!/usr/bin/env python3
"""Pin the exact version of everything that the workspace installs or builds with.

The pins are lines in the root `pyproject.toml`, between two marker comments: one block in `constraint-dependencies` for
the whole closure (every member, group, extra and platform), one in `build-constraint-dependencies` for what builds the
packages. They hold names and versions alone, no index, address or hash, so that they mean the same on everybody's
index; that is why they are kept in git and `uv.lock` is not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from workspace import ROOT, find_uv, normalized, read_members, read_toml, required_name

EXIT_DIFFERENT = 1
EXIT_NO_SOLUTION = 2

WORKSPACE_BLOCK = "workspace"
BUILD_BLOCK = "build"
INDENT = "    "


class PinError(Exception):
    """The pins cannot be read, or nothing satisfies them; the message says what to do."""


class Pins(NamedTuple):
    """Exact requirements, sorted: those of the workspace and those of its builds."""

    workspace: list[str]
    build: list[str]


# --- the lock file -> pins


def pins_of_lock(lock: dict[str, Any]) -> list[str]:
    """Return one exact requirement for each version that the lock takes from an index.

    Members, and what comes from a path or a repository, have no pin: their place in the workspace decides.
    """
    versions: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for package in lock.get("package", ()):
        if "registry" in package["source"]:
            versions[package["name"]].append(package)
    return [pin for name in sorted(versions) for pin in sorted(_pins_of_package(versions[name]))]


def _pins_of_package(packages: list[dict[str, Any]]) -> list[str]:
    if len(packages) == 1:
        return [f"{packages[0]['name']}=={packages[0]['version']}"]
    return [_pin_of_fork(package) for package in packages]


def _pin_of_fork(package: dict[str, Any]) -> str:
    # Two versions without markers would contradict each other; uv writes where each one holds.
    markers = package.get("resolution-markers")
    if not markers:
        raise PinError(f"the lock holds several versions of {package['name']} and does not say where each one applies")
    return f"{package['name']}=={package['version']} ; {' or '.join(f'({marker})' for marker in markers)}"


# --- the blocks in pyproject.toml


def _markers(block: str) -> tuple[str, str]:
    return f"# pins of the {block}: begin", f"# pins of the {block}: end"


def _span(text: str, block: str) -> tuple[int, int]:
    """Return where the lines between the two markers start and end."""
    begin, end = _markers(block)
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise PinError(f"pyproject.toml needs the comments {begin!r} and {end!r}, once each, in this order")
    first = text.find("\n", text.index(begin)) + 1
    last = text.rfind("\n", 0, text.index(end)) + 1
    return first, last


def read_block(text: str, block: str) -> list[str]:
    """Return the pins that stand between the markers of `block`."""
    first, last = _span(text, block)
    return tomllib.loads(f"pins = [\n{text[first:last]}]")["pins"]


def replace_block(text: str, block: str, pins: list[str]) -> str:
    """Return `text` with other pins in `block`, and every other character as it was."""
    first, last = _span(text, block)
    newline = "\r\n" if text[:first].endswith("\r\n") else "\n"
    lines = "".join(f"{INDENT}{json.dumps(pin)},{newline}" for pin in pins)
    return text[:first] + lines + text[last:]


def read_pins(text: str) -> Pins:
    """Return the pins that a `pyproject.toml` holds."""
    return Pins(read_block(text, WORKSPACE_BLOCK), read_block(text, BUILD_BLOCK))


def replace_pins(text: str, pins: Pins) -> str:
    """Return `text` with other pins, and every other character as it was."""
    return replace_block(replace_block(text, WORKSPACE_BLOCK, pins.workspace), BUILD_BLOCK, pins.build)


def released(pins: Pins, names: set[str] | None) -> Pins:
    """Return the pins that stay when those of `names` (None: all of them) are let go."""
    if names is None:
        return Pins([], [])
    return Pins(*([pin for pin in block if required_name(pin) not in names] for block in pins))


def differences(old: Pins, new: Pins) -> list[str]:
    """Return a line for each version that only `old` (-) or only `new` (+) has."""
    return [
        line
        for block, before, after in zip(Pins._fields, map(_versions, old), map(_versions, new), strict=True)
        for line in [
            *(f"{block}: - {version}" for version in before if version not in after),
            *(f"{block}: + {version}" for version in after if version not in before),
        ]
    ]


def _versions(pins: list[str]) -> list[str]:
    # Without the markers: uv spells the same fork in another way once pins take part in the resolution.
    return [pin.partition(" ;")[0] for pin in pins]


# --- uv


def _lock(folder: Path) -> list[str]:
    done = subprocess.run([*find_uv(), "lock", "--quiet"], cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise PinError(f"uv finds no versions that fit:\n{done.stderr.rstrip()}")
    return pins_of_lock(read_toml(folder / "uv.lock"))


def resolve_workspace(text: str, root: Path) -> list[str]:
    """Return the pins of the closure under the constraints that `text`, a root `pyproject.toml`, holds.

    It works in a copy without a lock file: uv keeps the versions of a lock that it finds, so with one the answer would
    depend on what this machine locked last.
    """
    with tempfile.TemporaryDirectory(prefix="cc-pin-") as name:
        folder = Path(name)
        (folder / "pyproject.toml").write_text(text, encoding="utf-8")
        for member in read_members(root).values():
            copy = folder / member.path.relative_to(root)
            copy.mkdir(parents=True)
            shutil.copy(member.path / "pyproject.toml", copy)
        return _lock(folder)


def resolve_build(text: str, root: Path) -> list[str]:
    """Return the pins of what builds the members, under the build constraints that `text` holds."""
    table = tomllib.loads(text)
    project = {
        "name": "build-closure",
        "version": "0",
        "requires-python": table["project"]["requires-python"],
        "dependencies": sorted({requirement for m in read_members(root).values() for requirement in m.build_requires}),
    }
    limits = table["tool"]["uv"]["build-constraint-dependencies"]
    lines = ["[project]", *(f"{key} = {json.dumps(value)}" for key, value in project.items())]
    lines += ["[tool.uv]", f"constraint-dependencies = {json.dumps(limits)}"]
    with tempfile.TemporaryDirectory(prefix="cc-pin-") as name:
        Path(name, "pyproject.toml").write_text("\n".join(lines), encoding="utf-8")
        return _lock(Path(name))


def resolve(text: str, root: Path) -> Pins:
    """Return the pins that uv would make under the constraints in `text`."""
    return Pins(resolve_workspace(text, root), resolve_build(text, root))


# --- the command


def check(root: Path = ROOT) -> int:
    """Say whether the pins are what uv would lock with them; return the exit code."""
    text = _read(root)
    try:
        found = differences(read_pins(text), resolve(text, root))
    except PinError as error:
        print(error)
        return EXIT_NO_SOLUTION
    for line in found:
        print(line)
    if found:
        print("These pins (-) are not what uv would lock (+). Run scripts/pin.py to refresh them.")
        return EXIT_DIFFERENT
    print("The pins are what uv would lock.")
    return 0


def refresh(names: set[str] | None, root: Path = ROOT) -> int:
    """Write the pins anew, letting go of those of `names` (None: of all); return the exit code."""
    text = _read(root)
    try:
        old = read_pins(text)
        new = resolve(replace_pins(text, released(old, names)), root)
    except PinError as error:
        print(error)
        print("If a pin stands in the way, let it go: scripts/pin.py --upgrade NAME ...")
        return EXIT_NO_SOLUTION
    for line in differences(old, new):
        print(line)
    _write(root, replace_pins(text, new))
    print(f"{len(new.workspace)} pins for the workspace, {len(new.build)} for its builds.")
    return 0


def _read(root: Path) -> str:
    # Bytes, not text mode: that would turn the line ends of the rest into this platform's.
    return (root / "pyproject.toml").read_bytes().decode()


def _write(root: Path, text: str) -> None:
    (root / "pyproject.toml").write_bytes(text.encode())


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(
        description="Write the exact versions of the whole closure into the root pyproject.toml. "
        "Without an option, pins that still fit stay as they are.",
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="change nothing; exit 1 if the pins are not up to date")
    choice.add_argument("--upgrade", nargs="*", metavar="NAME", help="take the newest versions, of these or of all")
    return parser.parse_args(words)


def main() -> int:
    """Run the command; return its exit code."""
    arguments = parse_arguments()
    if arguments.check:
        return check()
    if arguments.upgrade is None:
        return refresh(set())
    return refresh({normalized(name) for name in arguments.upgrade} or None)


if __name__ == "__main__":
    sys.exit(main())
