"""Check a package from inside an environment that has only the package and its requirements.

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

from workspace import ROOT, read_members, required_name, workspace_pins

SDK = "claude-agent-sdk"
# The SDK's wheel contains the whole CLI (157 MB): packages that know SDK objects only by shape must not pull it.
WITHOUT_SDK = {"cc-types", "cc-convert", "cc-ipc", "cc-loopback"}


def strangers(name: str, installed: Mapping[str, str], pins: Iterable[str], members: Iterable[str]) -> list[str]:
    """Return the distributions that should not be installed with a package."""
    pinned = {pin.partition(" ;")[0] for pin in pins}
    others = {other: version for other, version in installed.items() if other not in {*members}}
    lines = [
        f"{other} {version} has no pin" for other, version in others.items() if f"{other}=={version}" not in pinned
    ]
    return [*lines, *([f"{SDK} was installed too"] if SDK in installed and name in WITHOUT_SDK else [])]


def undeclared(package: Path, optional: Iterable[str]) -> list[str]:
    """Return the imports anywhere in a package that are neither installed nor `optional`."""
    lines: list[str] = []
    for path in sorted(package.rglob("*.py")):
        nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
        tops = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {*optional}
        lines += [f"{path.name} imports {top}, which is not declared" for top in sorted(tops) if find_spec(top) is None]
    return lines


def problems(name: str) -> list[str]:
    """Return the problems with this environment, in which `name` is installed."""
    package = Path(import_module(name.replace("-", "_")).__file__ or "").parent
    installed = {required_name(distribution.name): distribution.version for distribution in metadata.distributions()}
    pins = workspace_pins()
    extras = [need for need in metadata.requires(name) or () if "extra ==" in need]
    # Only pytest imports a pytest plugin, as in cc-loopback.
    optional = {required_name(need).replace("-", "_") for need in [*extras, "pytest"]}
    return [
        *([f"{name} is imported from the repository"] if package.is_relative_to(ROOT / "packages") else []),
        *strangers(name, installed, pins, [path.name for path in read_members()]),
        *undeclared(package, optional),
    ]


if __name__ == "__main__":
    sys.exit("\n".join(problems(sys.argv[1])) or 0)
