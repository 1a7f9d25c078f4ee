#!/usr/bin/env python3
"""Build all packages for a release, and check that they install.

    python3 scripts/release.py build
    python3 scripts/release.py check [--bounds] [--python VERSION] … [NAME …]

`build` writes into `dist`, which git ignores:

- a wheel and an sdist for each package, whose metadata and contents it checks;
- `constraints.txt`: the tested version for each distribution that the packages need, with all their extras;
- `requirements.txt`: the same with hashes, for `pip install --require-hashes`.

`check` installs from there into empty environments, see `check_installs.py`.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from email import message_from_bytes
from pathlib import Path, PurePosixPath

from check_installs import PYTHONS, check_all
from commands import CheckError, finish, run
from pin import PinError, compile_pins, select_pins
from workspace import CONSTRAINTS, DIST, REQUIREMENTS, ROOT, find_uv, read_members, read_toml, workspace_pins

CACHES = {"__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis", ".venv"}
METADATA = ("Name", "Version", "Summary", "Requires-Python", "License-Expression", "Author", "Project-URL")
# Parts of a README that an index cannot show: diagrams, and links to files of the repository.
NOT_SHOWN = re.compile(rb"```mermaid|\]\((?![a-z]+:|#)[^)\s]+\)")
SDIST = ("CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml")


def files_of(archive: Path) -> dict[str, bytes]:
    """Return the files in a wheel or an sdist; the paths in an sdist begin below its only folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(archive) as sdist:
        members = [(member.name, sdist.extractfile(member)) for member in sdist.getmembers()]
        return {name.partition("/")[2]: file.read() for name, file in members if file}


def problems_of(archive: Path) -> list[str]:
    """Return the problems with the contents and the metadata in a wheel or an sdist."""
    files = files_of(archive)
    missing = _missing_of_wheel(files) if archive.suffix == ".whl" else [name for name in SDIST if name not in files]
    return [f"{archive.name} {problem}" for problem in [*(f"has no {name}" for name in missing), *_stray(files)]]


def _missing_of_wheel(files: Mapping[str, bytes]) -> list[str]:
    tops = {name.partition("/")[0] for name in files}
    (info,) = (top for top in tops if top.endswith(".dist-info"))
    wanted = [f"{info}/licenses/LICENSE", *(f"{top}/py.typed" for top in sorted(tops - {info}))]
    metadata = message_from_bytes(files[f"{info}/METADATA"])
    fields = [field for field in METADATA if not metadata[field]]
    readme = [] if str(metadata.get_payload()).strip() else ["README in its metadata"]
    return [*(name for name in wanted if name not in files), *fields, *readme]


def _stray(files: Mapping[str, bytes]) -> Iterator[str]:
    folders = {f"{folder}/".encode() for folder in (ROOT, Path.home())}
    for name, content in files.items():
        path = PurePosixPath(name)
        if "tests" in path.parts:
            yield f"contains a test: {name}"
        if CACHES & {*path.parts} or path.suffix == ".pyc":
            yield f"contains a cache: {name}"
        if any(folder in content for folder in folders):
            yield f"contains a path of this machine: {name}"
        if path.name == "METADATA":
            yield from (f"contains, for an index: {part.decode()}" for part in NOT_SHOWN.findall(content))


def prepare(folder: Path) -> None:
    """Copy the workspace for a build: with the root's authors and addresses in all packages, and absolute links.

    An index shows a README without the repository around it.
    """
    project = read_toml(ROOT / "pyproject.toml")["project"]
    shutil.copytree(ROOT / "packages", folder / "packages", ignore=shutil.ignore_patterns(*CACHES))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in (folder / "packages").iterdir():
        pages = f"{project['urls']['Source']}/blob/main"
        urls = project["urls"] | {"Changelog": f"{pages}/packages/{package.name}/CHANGELOG.md"}
        table = ", ".join(f"{name} = {json.dumps(url)}" for name, url in urls.items())
        authors = ", ".join(f"{{ name = {json.dumps(author['name'])} }}" for author in project["authors"])
        settings, readme = package / "pyproject.toml", package / "README.md"
        filled = f"[project]\nauthors = [{authors}]\nurls = {{ {table} }}\n"
        settings.write_text(settings.read_text("utf-8").replace("[project]\n", filled, 1), "utf-8")
        readme.write_text(absolute_links(readme.read_text("utf-8"), f"packages/{package.name}", pages), "utf-8")


def absolute_links(text: str, folder: str, pages: str) -> str:
    """Return Markdown with links to pages of the repository in the place of links relative to `folder`."""

    def absolute(link: re.Match[str]) -> str:
        return f"]({pages}/{posixpath.normpath(f'{folder}/{link[1]}')})"

    return re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)", absolute, text)


def requirements() -> str:
    """Return the requirements file: all packages and all that they need with all extras, with hashes.

    Raises:
        CheckError: It would contain an index address.
    """
    wanted = [
        f"{path.name}[{','.join(table['project'].get('optional-dependencies', ()))}]"
        for path, table in read_members().items()
    ]
    pins = workspace_pins()
    text = compile_pins(wanted, pins, "--generate-hashes", f"--find-links={DIST}")
    if "://" in text:
        raise CheckError(f"the requirements contain an address:\n{text}")
    return text


async def build() -> list[str]:
    with tempfile.TemporaryDirectory(prefix="cc-release-") as folder:
        prepare(Path(folder))
        await run([*find_uv(), "build", "--all-packages", "--clear", f"--out-dir={DIST}"], Path(folder))
    archives = sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")])
    if problems := [problem for archive in archives for problem in problems_of(archive)]:
        return problems
    # twine checks the metadata as an index does, and that an index can show the README.
    await run([*find_uv(), "tool", "run", "--quiet", "twine", "check", "--strict", *map(str, archives)], ROOT)
    try:
        text = requirements()
    except PinError as error:
        raise CheckError(str(error)) from error
    REQUIREMENTS.write_text(text, encoding="utf-8")
    CONSTRAINTS.write_text("".join(f"{pin}\n" for pin in select_pins(text)), encoding="utf-8")
    print(*(path.relative_to(ROOT) for path in [*archives, CONSTRAINTS, REQUIREMENTS]), sep="\n")
    return []


def main() -> int:
    names = [path.name for path in read_members()]
    parser = argparse.ArgumentParser(description="Build all packages for a release, and check that they install.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help=f"write wheels, sdists, constraints and requirements into {DIST.name}")
    checking = commands.add_parser("check", help=f"install from {DIST.name} into empty environments")
    checking.add_argument("names", nargs="*", metavar="NAME", help="packages to check (default: all)")
    checking.add_argument(
        "--python",
        action="append",
        metavar="VERSION",
        help=f"version or path of an interpreter; may be repeated (default: {', '.join(PYTHONS)}, if available)",
    )
    checking.add_argument("--bounds", action="store_true", help="also with the lowest and the newest allowed versions")
    arguments = parser.parse_args()
    if arguments.command == "build":
        return finish(build())
    if unknown := sorted({*arguments.names} - {*names}):
        parser.error(f"unknown package: {', '.join(unknown)}")
    return finish(check_all(arguments.names or names, arguments.python, bounds=arguments.bounds))


if __name__ == "__main__":
    sys.exit(main())
