#!/usr/bin/env python3
"""Build all packages for a release, and check that they install.

    python3 scripts/release.py build
    python3 scripts/release.py check [--bounds] [--python VERSION] … [NAME …]

`build` writes into `dist`, which git ignores:

- a wheel and an sdist for each package, whose metadata and contents it checks;
- `constraints.txt`: the tested version for each distribution that the packages need, with all their extras;
- `requirements.txt`: the same with hashes, for `pip install --require-hashes`;
- `SHA256SUMS`: the hashes of all archives, for `sha256sum --check`;
- `sbom.cdx.json`: these distributions as a CycloneDX bill of materials;
- `provenance.json`: an in-toto statement in SLSA's form: archives by hash, and the commit, if all files are committed.
  It is not signed: an index or a builder with an identity does that.

`check` installs from there into empty environments, on several Python versions. pip installs each package by name, in
the tested versions, and all workspace packages from `dist`. The package has no undeclared imports or needless SDK
(`check_alone.py`), and the README examples run. All packages install with `--require-hashes`, and the commands run from
`uvx`.
"""

import argparse
import asyncio
import hashlib
import json
import os
import posixpath
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from email import message_from_bytes
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from commands import CheckError, check_each, create_empty, finish, run, temporary_folder
from pin import compile_pins, select_pins
from workspace import ROOT, find_uv, read_members, read_toml, required_name, workspace_pins

DIST = ROOT / "dist"
CONSTRAINTS = DIST / "constraints.txt"
REQUIREMENTS = DIST / "requirements.txt"
SUMS, SBOM, PROVENANCE = (DIST / name for name in ("SHA256SUMS", "sbom.cdx.json", "provenance.json"))

CACHES = {"__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis", ".venv"}
METADATA = ("Name", "Version", "Summary", "Requires-Python", "License-Expression", "Author", "Project-URL")
# Parts of a README that an index cannot show: diagrams, and links to files of the repository.
NOT_SHOWN = re.compile(rb"```mermaid|\]\((?![a-z]+:|#)[^)\s]+\)")
SDIST = ("CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml")

PYTHONS = ("3.11", "3.12", "3.13", "3.14")

ALONE = Path(__file__).with_name("check_alone.py")
# On Python 3.14 langsmith, which LangChain imports, uses a deprecated function.
WARNINGS = ("-W", "error", "-W", "ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning")
TOOLS = ("anyio", "hypothesis", "pytest", "pytest-timeout")
# The first interpreters compile all libraries that they load, which takes a minute on a very busy machine.
TEST_SECONDS = 300
# As strict as in the workspace, without the settings that only apply to all packages together. langchain-tests brings
# the plugins, which the workspace does not load either.
PLUGINS = ("asyncio", "benchmark", "codspeed", "langsmith_plugin", "recording", "socket", "syrupy")
UNLOADED = " ".join(f"-p no:{name}" for name in PLUGINS)
SETTINGS = (f"addopts=--import-mode=importlib {UNLOADED}", "pythonpath=", f"timeout={TEST_SECONDS}")
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"--override-ini={setting}" for setting in SETTINGS)]

ONE_LINERS = {
    "cc-convert": "uvx cc-convert --version",
    "cc-demo": "uvx cc-demo --offline",
    # The server is also the address for the doctor, which sends no request: the check needs no API.
    "server": """
        uvx cc-server --port 0 > server.env &
        trap "kill $!; wait" EXIT
        until grep -q API_KEY server.env; do kill -0 $!; sleep 0.1; done
        . ./server.env
        python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).status)' "$ANTHROPIC_BASE_URL/healthz"
        uvx cc-model doctor
    """,
}


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
        CheckError: No versions satisfy them, or it would contain an index address.
    """
    projects = [table["project"] for table in read_members().values()]
    wanted = [f"{project['name']}[{','.join(project.get('optional-dependencies', ()))}]" for project in projects]
    text = compile_pins(wanted, workspace_pins(), "--generate-hashes", f"--find-links={DIST}")
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
    text = requirements()
    REQUIREMENTS.write_text(text, encoding="utf-8")
    CONSTRAINTS.write_text("".join(f"{pin}\n" for pin in select_pins(text)), encoding="utf-8")
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in archives}
    SUMS.write_text("".join(f"{digest}  {name}\n" for name, digest in hashes.items()), encoding="utf-8")
    SBOM.write_text(json.dumps(await bill_of_materials(), indent=1), encoding="utf-8")
    PROVENANCE.write_text(json.dumps(provenance(hashes), indent=1), encoding="utf-8")
    written = [*archives, CONSTRAINTS, REQUIREMENTS, SUMS, SBOM, PROVENANCE]
    print(*(path.relative_to(ROOT) for path in written), sep="\n")
    return []


async def bill_of_materials() -> dict[str, Any]:
    """Return what the packages need with all extras, without the addresses of an index."""
    wanted = ["--all-packages", "--all-extras", "--no-dev", "--format=cyclonedx1.5"]
    with temporary_folder() as name:
        file = Path(name) / "sbom.json"
        await run([*find_uv(), "export", "--quiet", *wanted, f"--output-file={file}"], ROOT)
        bill = json.loads(file.read_text("utf-8"))
    for component in bill["components"]:
        component.pop("externalReferences", None)
    return bill


def provenance(hashes: Mapping[str, str]) -> dict[str, Any]:
    """Return the statement about archives with these SHA-256 hashes by name."""
    source = read_toml(ROOT / "pyproject.toml")["project"]["urls"]["Source"]
    commit, changes = (
        subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
        for words in (["rev-parse", "HEAD"], ["status", "--porcelain"])
    )
    sources = [{"uri": f"git+{source}", "digest": {"gitCommit": commit}}] if commit and not changes else []
    script = f"{source}/blob/main/scripts/release.py"
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in hashes.items()],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": script,
                "externalParameters": {"command": "python3 scripts/release.py build"},
                "resolvedDependencies": sources,
            },
            "runDetails": {"builder": {"id": script}},
        },
    }


def from_elsewhere(installed: Iterable[Path]) -> list[str]:
    """Return the workspace packages among installed distributions that are not those of the release folder."""
    names = {path.name for path in read_members()}
    strangers: list[str] = []
    for folder in installed:
        name, version = folder.name.removesuffix(".dist-info").split("-")
        if required_name(name) in names:
            wheel = DIST / f"{name}-{version}-py3-none-any.whl"
            metadata = files_of(wheel).get(f"{folder.name}/METADATA") if wheel.exists() else None
            if metadata != (folder / "METADATA").read_bytes():
                strangers.append(f"{required_name(name)} {version} is not that of {DIST.name}")
    return strangers


async def install(folder: Path, python: str, *wanted: str) -> tuple[str, int]:
    """Create an empty environment and install requirements; return the interpreter and the number installed."""
    interpreter = await create_empty(folder, python)
    await run(
        [*find_uv(), "pip", "install", "--quiet", f"--python={interpreter}", f"--find-links={DIST}", *wanted], folder
    )
    distributions = installed_in(folder)
    if problems := from_elsewhere(distributions):
        raise CheckError("\n".join(problems))
    return interpreter, len(distributions)


def installed_in(folder: Path) -> list[Path]:
    """Return the metadata folders of the distributions in the environment that a folder has."""
    return [*folder.glob("venv/lib/python*/site-packages/*.dist-info")]


async def check_package(path: Path, table: dict[str, Any], python: str, places: asyncio.Queue[Path]) -> str:
    folder = await places.get()
    try:
        interpreter, installed = await install(folder, python, f"--constraint={CONSTRAINTS}", path.name)
        # Environments in the same place have the same files, which the first interpreter compiles for all.
        compiled = str(folder / "compiled")
        await run([interpreter, "-I", "-X", f"pycache_prefix={compiled}", *WARNINGS, str(ALONE), path.name], ROOT)
        groups = table.get("dependency-groups", {})
        tools = [*TOOLS, *(f"--group={path}/pyproject.toml:{group}" for group in groups)]
        # In the workspace folder, for its pins. Not compiled: the interpreters have their compiled files elsewhere.
        options = ["--quiet", "--no-sources", "--no-compile-bytecode", f"--python={interpreter}"]
        await run([*find_uv(), "pip", "install", *options, f"--find-links={DIST}", *tools], ROOT)
        tests = [path / "tests" / name for name in ("test_readme.py", "test_package.py")]
        # The root's fixtures need the loopback API, which not every package has in its tests.
        shared = path.name == "cc-loopback" or "cc-loopback" in map(required_name, groups.get("test", ()))
        confined = f"--confcutdir={ROOT if shared else path}"
        command = [interpreter, *PYTEST, confined, *(str(test) for test in tests if test.exists())]
        output = await run(command, ROOT, {"PYTHONPYCACHEPREFIX": compiled})
        return f"{installed:3} distributions; README: {output.splitlines()[-1]}"
    finally:
        places.put_nowait(folder)


async def check_hashes(python: str) -> str:
    with temporary_folder() as name:
        interpreter = await create_empty(Path(name), python)
        # By pip itself, as a user would. Not compiled: most files are never imported.
        pip = [*find_uv(), "tool", "run", "--quiet", "pip", f"--python={interpreter}", "install", "--no-compile"]
        hashed = ["--quiet", f"--find-links={DIST}", "--require-hashes", f"--requirement={REQUIREMENTS}"]
        await run([*pip, *hashed], Path(name))
        return "all distributions, by their hashes"


async def check_one_liner(script: str, python: str) -> str:
    uvx = [*find_uv(), "tool", "run", "--quiet", f"--python={python}", f"--find-links={DIST}"]
    # Else uv would take the environment from an earlier build with this version.
    uvx += [f"--constraints={CONSTRAINTS}", *(f"--refresh-package={path.name}" for path in read_members())]
    with temporary_folder() as name:
        return await run(["bash", "-euc", script.replace("uvx", shlex.join(uvx))], Path(name))


def direct_requirements() -> list[str]:
    """Return the packages, and all that they and their extras require but for exact versions."""
    tables = [table["project"] for table in read_members().values()]
    lists = [
        needs for table in tables for needs in [table["dependencies"], *table.get("optional-dependencies", {}).values()]
    ]
    return sorted({table["name"] for table in tables} | {need for needs in lists for need in needs if "==" not in need})


async def check_bound(resolution: str, python: str) -> str:
    """Run the demo with the lowest or the newest versions that the packages allow."""
    with temporary_folder() as name:
        interpreter = await create_empty(Path(name), python)
        pip = [*find_uv(), "pip", "install", "--quiet", f"--python={interpreter}", f"--find-links={DIST}"]
        await run([*pip, f"--resolution={resolution}", *direct_requirements()], Path(name))
        imports = "import " + ", ".join(path.name.replace("-", "_") for path in read_members())
        await run([interpreter, "-c", imports], Path(name))
        return (await run([f"{name}/venv/bin/cc-demo", "--offline"], Path(name))).splitlines()[-1]


async def find_pythons(wanted: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the versions or paths for which uv finds or fetches an interpreter, and the others."""
    present: list[str] = []
    absent: list[str] = []
    for version in wanted:
        command = [*find_uv(), "run", "--quiet", "--no-project", f"--python={version}", "python", "-c", "pass"]
        try:
            await run(command, DIST)
            present.append(version)
        except CheckError:
            absent.append(version)
    return present, absent


def use_all_of_pyenv() -> None:
    """Let pyenv's commands start every installed version, not only the chosen version, which stays the first."""
    if pyenv := shutil.which("pyenv"):
        chosen, every = (
            subprocess.run([pyenv, *words], stdout=subprocess.PIPE, text=True, check=False).stdout.split()
            for words in (["version-name"], ["versions", "--bare"])
        )
        os.environ["PYENV_VERSION"] = ":".join(dict.fromkeys([*":".join(chosen).split(":"), *every]))


async def check_all(names: Iterable[str], pythons: list[str] | None, *, bounds: bool = False) -> list[str]:
    """Check the named packages on Python versions, by default on all that are here; return the failures.

    `bounds` adds the lowest and the newest allowed versions, which change with the index.
    """
    if not REQUIREMENTS.exists():
        raise CheckError(f"There is no release in {DIST}. Build it first: python3 scripts/release.py build")
    use_all_of_pyenv()
    present, absent = await find_pythons(pythons or PYTHONS)
    if pythons and absent:
        raise CheckError(f"uv neither finds nor can fetch Python {', '.join(absent)}")
    checks: dict[str, Callable[[], Awaitable[str]]] = {}
    places: asyncio.Queue[Path] = asyncio.Queue()
    for python in present:
        for path, table in read_members().items():
            if path.name in names:
                checks[f"{python} {path.name}"] = partial(check_package, path, table, python, places)
        checks[f"{python} hashes"] = partial(check_hashes, python)
        for name, script in ONE_LINERS.items():
            checks[f"{python} uvx {name}"] = partial(check_one_liner, script, python)
        for resolution in ("lowest-direct", "highest") if bounds else ():
            checks[f"{python} {resolution}"] = partial(check_bound, resolution, python)
    with temporary_folder() as name:
        for place in (Path(name, "first"), Path(name, "second")):
            place.mkdir()
            places.put_nowait(place)
        failed = await check_each(checks)
    print(f"Ran on Python {', '.join(present) or '(no version)'}.")
    if absent:
        print(f"NOT RUN on Python {', '.join(absent)}: uv neither finds nor can fetch it here.")
    return failed


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
