"""Check the built release in empty environments, on several Python versions: started by `release.py check`.

pip installs each package by name, in the tested versions, and all workspace packages from the release folder. The
package has no undeclared imports or needless SDK (`check_alone.py`), and the README examples run. All packages install
with `--require-hashes`, and the commands run from `uvx`.
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
        uvx --from 'cc-messages[server]' cc-messages serve --port 0 > server.env &
        trap "kill $!; wait" EXIT
        until grep -q API_KEY server.env; do kill -0 $!; sleep 0.1; done
        . ./server.env
        python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).status)' "$ANTHROPIC_BASE_URL/healthz"
        uvx cc-model doctor
    """,
}


def from_elsewhere(sources: Mapping[str, str]) -> list[str]:
    """Return the workspace packages that did not come from the release folder."""
    names, prefix = {path.name for path in read_members()}, f"{DIST.as_uri()}/"
    return [f"{name} came from {url}" for name, url in sources.items() if name in names and not url.startswith(prefix)]


async def install(folder: Path, python: str, *wanted: str) -> tuple[str, int]:
    """Create an empty environment and install requirements by pip; return the interpreter and the number installed."""
    # Not compiled: most files are never imported.
    await run([*find_uv(), "venv", "--quiet", "--no-project", f"--python={python}", str(folder / "env")], folder)
    interpreter, report = str(folder / "env" / "bin" / "python"), folder / "report.json"
    pip = [*find_uv(), "tool", "run", "--quiet", "pip", f"--python={interpreter}", "install", "--no-compile", "--quiet"]
    await run([*pip, f"--find-links={DIST}", f"--report={report}", *wanted], folder)
    entries = json.loads(report.read_text(encoding="utf-8"))["install"]
    sources = {required_name(entry["metadata"]["name"]): entry["download_info"]["url"] for entry in entries}
    if problems := from_elsewhere(sources):
        raise CheckError("\n".join(problems))
    return interpreter, len(sources)


async def check_package(path: Path, table: dict[str, Any], python: str) -> str:
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as name:
        interpreter, installed = await install(Path(name), python, f"--constraint={CONSTRAINTS}", path.name)
        await run([interpreter, "-I", "-W", "error", str(ALONE), path.name], ROOT)
        groups = table.get("dependency-groups", {})
        tools = [*TOOLS, *(f"--group={path}/pyproject.toml:{group}" for group in groups)]
        # In the workspace folder, so that the pins there apply to the tools.
        adding = [*find_uv(), "pip", "install", "--quiet", "--no-sources", f"--python={interpreter}"]
        await run([*adding, f"--find-links={DIST}", *tools], ROOT)
        tests = [path / "tests" / name for name in ("test_readme.py", "test_package.py")]
        # The root's fixtures need the loopback API, which not every package has in its tests.
        shared = path.name == "cc-loopback" or "cc-loopback" in map(required_name, groups.get("test", ()))
        confined = f"--confcutdir={ROOT if shared else path}"
        output = await run([interpreter, *PYTEST, confined, *(str(test) for test in tests if test.exists())], ROOT)
        return f"{installed:3} distributions; README: {output.splitlines()[-1]}"


async def check_hashes(python: str) -> str:
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as name:
        _, installed = await install(Path(name), python, "--require-hashes", f"--requirement={REQUIREMENTS}")
        return f"{installed:3} distributions, by their hashes"


async def check_one_liner(script: str, python: str) -> str:
    uvx = [*find_uv(), "tool", "run", "--quiet", f"--python={python}", f"--find-links={DIST}"]
    # Else uv would take the environment from an earlier build with this version.
    uvx += [f"--constraints={CONSTRAINTS}", *(f"--refresh-package={path.name}" for path in read_members())]
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as name:
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
    with tempfile.TemporaryDirectory(prefix="cc-check-", ignore_cleanup_errors=True) as name:
        await run([*find_uv(), "venv", "--quiet", "--no-project", f"--python={python}", "env"], Path(name))
        pip = [*find_uv(), "pip", "install", "--quiet", "--python=env", f"--find-links={DIST}"]
        await run([*pip, f"--resolution={resolution}", *direct_requirements()], Path(name))
        imports = "import " + ", ".join(path.name.replace("-", "_") for path in read_members())
        await run([f"{name}/env/bin/python", "-c", imports], Path(name))
        return (await run([f"{name}/env/bin/cc-demo", "--offline"], Path(name))).splitlines()[-1]


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
    for python in present:
        for path, table in read_members().items():
            if path.name in names:
                checks[f"{python} {path.name}"] = partial(check_package, path, table, python)
        checks[f"{python} hashes"] = partial(check_hashes, python)
        for name, script in ONE_LINERS.items():
            checks[f"{python} uvx {name}"] = partial(check_one_liner, script, python)
        for resolution in ("lowest-direct", "highest") if bounds else ():
            checks[f"{python} {resolution}"] = partial(check_bound, resolution, python)
    failed = await check_each(checks)
    print(f"Ran on Python {', '.join(present) or '(no version)'}.")
    if absent:
        print(f"NOT RUN on Python {', '.join(absent)}: uv neither finds nor can fetch it here.")
    return failed
