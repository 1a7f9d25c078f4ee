"""Check a package from inside an environment that has only the package and its requirements.

    python -I -W error scripts/check_alone.py NAME

Exits with the problems, if any. Started by release.py.
"""

import ast
import sys
from collections.abc import Container, Iterable, Mapping
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path, PurePath

sys.path.append(str(Path(__file__).parent))  # -I leaves it out

from workspace import ROOT, read_members, required_name, workspace_pins

SDK = "claude-agent-sdk"
# The SDK's wheel contains the whole CLI (157 MB): packages that know SDK objects only by shape must not pull it.
WITHOUT_SDK = {"cc-types", "cc-convert", "cc-ipc", "cc-loopback"}
# Only these programs import the plugins for them, so no package requires them.
HOSTS = {"pytest"}


def strangers(name: str, installed: Mapping[str, str], pins: Iterable[str], members: Iterable[str]) -> list[str]:
    """Return the distributions that should not be installed with a package."""
    pinned = {pin.partition(" ;")[0] for pin in pins}
    others = {other: version for other, version in installed.items() if other not in {*members}}
    lines = [
        f"{other} {version} has no pin" for other, version in others.items() if f"{other}=={version}" not in pinned
    ]
    return [*lines, *([f"{SDK} was installed too"] if SDK in installed and name in WITHOUT_SDK else [])]


def undeclared(package: Path, optional: Container[str]) -> list[str]:
    """Return the imports anywhere in a package that are neither installed nor `optional`."""
    lines: list[str] = []
    for path in sorted(package.rglob("*.py")):
        nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
        tops = sorted({name.partition(".")[0] for name in names} - sys.stdlib_module_names)
        missing = [top for top in tops if top not in optional and find_spec(top) is None]
        lines += [f"{path.name} imports {top}, which is not declared" for top in missing]
    return lines


def import_packages(files: Iterable[PurePath]) -> list[str]:
    """Return the import packages among a distribution's files."""
    return sorted({file.parts[0] for file in files if file.parts[1:] == ("__init__.py",)})


def check_import(package: str, optional: Container[str]) -> list[str]:
    """Import a package; return its problems. A plugin's import may lack the program that it is for."""
    spec = find_spec(package)
    folder = Path(spec.origin or "" if spec else "").parent
    lines = [f"{package} is imported from the repository"] if folder.is_relative_to(ROOT / "packages") else []
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if (error.name or "") not in optional:
            lines.append(f"{package} cannot be imported: {error}")
    return [*lines, *undeclared(folder, optional)]


def problems(name: str) -> list[str]:
    """Return the problems with this environment, in which `name` is installed."""
    installed = {required_name(distribution.name): distribution.version for distribution in metadata.distributions()}
    lines = strangers(name, installed, workspace_pins(), [path.name for path in read_members()])
    extras = [need for need in metadata.requires(name) or () if "extra ==" in need]
    optional = {required_name(need).replace("-", "_") for need in extras} | HOSTS
    packages = import_packages(metadata.files(name) or ())
    lines += [] if packages else [f"{name} has no import package"]
    return [*lines, *(line for package in packages for line in check_import(package, optional))]


if __name__ == "__main__":
    sys.exit("\n".join(problems(sys.argv[1])) or 0)
