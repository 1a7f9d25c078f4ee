"""Check the built release in empty environments, on several versions of Python: started by `release.py check`.

- Each package is installed by pip, by its name and in the tested versions. All packages of this workspace must come
  from the folder of the release. The package is imported without a warning, has no undeclared imports, and the SDK,
  with its CLI, is installed only where it is needed (`check_alone.py`).
- The examples of its README run; their tests bring the dependency group `test`.
- All packages are installed with `--require-hashes`.
- The commands run from `uvx`, in an environment of their own each.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from commands import CheckError, check_each, run
from workspace import CONSTRAINTS, DIST, REQUIREMENTS, ROOT, find_uv, read_members, required_name

PYTHONS = ("3.11", "3.12", "3.13", "3.14")

ALONE = Path(__file__).with_name("check_alone.py")
TOOLS = ("anyio", "hypothesis", "pytest", "pytest-timeout")
# The first interpreters compile all libraries that they load, which takes a minute on a very busy machine.
TEST_SECONDS = 300
# As strict as in the workspace, without the settings that only apply to all packages together.
SETTINGS = ("addopts=--import-mode=importlib", "pythonpath=", f"timeout={TEST_SECONDS}")
PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"--override-ini={setting}" for setting in SETTINGS)]

# A key makes the doctor content; it is used with the scripted model only.
ONE_LINERS = {
    "cc-convert": "uvx cc-convert --version",
    "cc-demo": "uvx cc-demo --offline",
    "doctor": "ANTHROPIC_API_KEY=none uvx cc-model doctor",
    "server": """
        uvx --from 'cc-messages[server]' cc-messages serve --port 0 > server.env &
        trap "kill $!; wait" EXIT
        until grep -q API_KEY server.env; do kill -0 $!; sleep 0.1; done
        . ./server.env
        python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).status)' "$ANTHROPIC_BASE_URL/healthz"
    """,
}


def read_report(report: Path) -> dict[str, str]:
    """Return the URL from which pip, by its report, has installed each distribution."""
    installed = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {required_name(one["metadata"]["name"]): one["download_info"]["url"] for one in installed}


def from_elsewhere(sources: Mapping[str, str]) -> list[str]:
    """Return the packages of this workspace that did not come from the folder of the release."""
    names, prefix = {path.name for path in read_members()}, f"{DIST.as_uri()}/"
    return [f"{name} came from {url}" for name, url in sources.items() if name in names and not url.startswith(prefix)]


async def install(folder: Path, python: str, *wanted: str) -> tuple[str, int]:
    """Create an empty environment in a folder and install requirements by pip.

    Returns:
        Its interpreter, and the number of installed distributions.
    """
    # Most files of an environment for one use are never imported, so that they need no compilation.
    await run([*find_uv(), "venv", "--quiet", "--no-project", f"--python={python}", str(folder / "env")], folder)
    interpreter, report = str(folder / "env" / "bin" / "python"), folder / "report.json"
    pip = [*find_uv(), "tool", "run", "--quiet", "pip", f"--python={interpreter}", "install", "--no-compile", "--quiet"]
    await run([*pip, f"--find-links={DIST}", f"--report={report}", *wanted], folder)
    sources = read_report(report)
    if problems := from_elsewhere(sources):
        raise CheckError("\n".join(problems))
    return interpreter, len(sources)


async def check_package(path: Path, table: dict[str, Any], python: str) -> str:
    """Check one package; return its line of output."""
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as name:
        interpreter, installed = await install(Path(name), python, f"--constraint={CONSTRAINTS}", path.name)
        await run([interpreter, "-I", "-W", "error", str(ALONE), path.name], ROOT)
        groups = table.get("dependency-groups", {})
        tools = [*TOOLS, *(f"--group={path}/pyproject.toml:{group}" for group in groups)]
        # In the workspace's folder, so that its pins apply to the tools.
        adding = [*find_uv(), "pip", "install", "--quiet", "--no-sources", f"--python={interpreter}"]
        await run([*adding, f"--find-links={DIST}", *tools], ROOT)
        tests = [one for one in (path / "tests").glob("test_*.py") if one.name in ("test_readme.py", "test_package.py")]
        # The root's fixtures for all packages need the loopback API, which not every package has in its tests.
        shared = path.name == "cc-loopback" or "cc-loopback" in map(required_name, groups.get("test", ()))
        confined = f"--confcutdir={ROOT if shared else path}"
        output = await run([interpreter, *PYTEST, confined, *map(str, tests)], ROOT)
        return f"{installed:3} distributions; README: {output.splitlines()[-1]}"


async def check_hashes(python: str) -> str:
    """Install all packages with hashes; return the line of output."""
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as name:
        _, installed = await install(Path(name), python, "--require-hashes", f"--requirement={REQUIREMENTS}")
        return f"{installed:3} distributions, by their hashes"


async def check_one_liner(script: str, python: str) -> str:
    """Run a command by `uvx`; return its output."""
    uvx = [*find_uv(), "tool", "run", "--quiet", f"--python={python}", f"--find-links={DIST}"]
    # Else uv would take the environment of an earlier build of this version.
    uvx += [f"--constraints={CONSTRAINTS}", *(f"--refresh-package={path.name}" for path in read_members())]
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as name:
        return await run(["bash", "-euc", script.replace("uvx", shlex.join(uvx))], Path(name))


async def find_pythons(wanted: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the versions or paths of which uv finds or fetches an interpreter, and the others."""
    found: list[str] = []
    absent: list[str] = []
    for version in wanted:
        command = [*find_uv(), "run", "--quiet", "--no-project", f"--python={version}", "python", "-c", "pass"]
        try:
            await run(command, DIST)
            found.append(version)
        except CheckError:
            absent.append(version)
    return found, absent


def use_all_of_pyenv() -> None:
    """Let the commands of pyenv start every version that it has, not only the chosen one, which stays the first."""
    if pyenv := shutil.which("pyenv"):
        chosen, every = (
            subprocess.run([pyenv, *words], stdout=subprocess.PIPE, text=True, check=False).stdout.split()
            for words in (["version-name"], ["versions", "--bare"])
        )
        os.environ["PYENV_VERSION"] = ":".join(dict.fromkeys([*":".join(chosen).split(":"), *every]))


async def check_all(names: Iterable[str], pythons: list[str] | None) -> list[str]:
    """Check the named packages on the given versions of Python, or on all that are here; return the failures."""
    if not REQUIREMENTS.exists():
        raise CheckError(f"There is no release in {DIST}. Build it first: python3 scripts/release.py build")
    use_all_of_pyenv()
    found, absent = await find_pythons(pythons or PYTHONS)
    if pythons and absent:
        raise CheckError(f"uv neither finds nor can fetch Python {', '.join(absent)}")
    checks: dict[str, Callable[[], Awaitable[str]]] = {}
    for python in found:
        for path, table in read_members().items():
            if path.name in names:
                checks[f"{python} {path.name}"] = partial(check_package, path, table, python)
        checks[f"{python} hashes"] = partial(check_hashes, python)
        for name, script in ONE_LINERS.items():
            checks[f"{python} uvx {name}"] = partial(check_one_liner, script, python)
    failed = await check_each(checks)
    print(f"Ran on Python {', '.join(found) or 'of no version'}.")
    if absent:
        print(f"NOT RUN on Python {', '.join(absent)}: uv neither finds nor can fetch it here.")
    return failed
