"""Check a package from inside an environment with nothing but the package and its requirements.

    python -I -W error scripts/check_alone.py NAME

Exits with the problems, if any. Started by check_installs.py.
"""

import ast
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # -I leaves it out

from workspace import ROOT, read_members, read_toml, required_name

SDK = "claude-agent-sdk"
# The SDK's wheel contains the whole CLI (157 MB): packages that only use duck typing on its objects must not pull it.
WITHOUT_SDK = {"cc-types", "cc-convert", "cc-ipc", "cc-loopback"}


def strangers(name: str, installed: Mapping[str, str], pins: Iterable[str], members: Iterable[str]) -> list[str]:
    """Return the distributions that should not be installed with a package."""
    pinned = {pin.partition(" ;")[0] for pin in pins}
    others = {one: version for one, version in installed.items() if one not in {*members}}
    found = [f"{one} {version} has no pin" for one, version in others.items() if f"{one}=={version}" not in pinned]
    return [*found, *([f"{SDK} was installed too"] if SDK in installed and name in WITHOUT_SDK else [])]


def undeclared(package: Path, optional: Iterable[str]) -> list[str]:
    """Return the imports anywhere in a package that are neither installed nor `optional`."""
    found: list[str] = []
    for path in sorted(package.rglob("*.py")):
        nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
        tops = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {*optional}
        found += [f"{path.name} imports {top}, which is not declared" for top in sorted(tops) if find_spec(top) is None]
    return found


def problems(name: str) -> list[str]:
    """Return the problems of this environment, in which `name` is installed."""
    package = Path(import_module(name.replace("-", "_")).__file__ or "").parent
    installed = {required_name(one.name): one.version for one in metadata.distributions()}
    pins = read_toml(ROOT / "pyproject.toml")["tool"]["uv"]["constraint-dependencies"]
    extras = [need for need in metadata.requires(name) or () if "extra ==" in need]
    # A pytest plugin, as in cc-loopback, is imported by pytest only.
    optional = {required_name(need).replace("-", "_") for need in [*extras, "pytest"]}
    return [
        *([f"{name} is imported from the repository"] if package.is_relative_to(ROOT / "packages") else []),
        *strangers(name, installed, pins, [path.name for path in read_members()]),
        *undeclared(package, optional),
    ]


if __name__ == "__main__":
    sys.exit("\n".join(problems(sys.argv[1])) or 0)
