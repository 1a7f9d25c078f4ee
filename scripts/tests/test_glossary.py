"""Names in the code, and the words for them in specs/001."""

import ast
import re
from collections import defaultdict
from importlib import import_module

from workspace import ROOT

SPEC = (ROOT / "specs" / "001-architecture.md").read_text("utf-8")
PACKAGES = {path.name: path for path in ROOT.glob("packages/*/src/*") if (path / "__init__.py").is_file()}
# cc-session also raises these as instances of the SDK's classes.
SHARED = {
    "CLIConnectionError", "CLIJSONDecodeError", "CLINotFoundError", "MessageParseError", "ProcessExitedError",
}  # fmt: skip


# Programs load these by name; nobody imports them.
PLUGINS = {"cc_ipc_bridge", "cc_model_clai2", "cc_model_pytest"}


def table(heading: str) -> list[list[str]]:
    section = SPEC.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows]


# The packages for each class name without an underscore.
CLASSES: defaultdict[str, set[str]] = defaultdict(set)
for _package, _folder in PACKAGES.items():
    for _node in (node for path in _folder.rglob("*.py") for node in ast.parse(path.read_text("utf-8")).body):
        if isinstance(_node, ast.ClassDef) and not _node.name.startswith("_"):
            CLASSES[_node.name].add(_package)


def test_the_public_names_are_those_of_the_specification() -> None:
    """ARCH-28."""
    listed = {row[0].strip("`"): re.findall(r"`(\w+)`", row[1]) for row in table("Fixed public names") if "_" in row[0]}
    assert listed.keys() == PACKAGES.keys() - PLUGINS
    for package, names in listed.items():
        assert names == sorted(import_module(package).__all__), package


def test_a_glossary_word_has_one_meaning_and_an_existing_name() -> None:
    rows = table("Glossary")[2:]
    words = [row[0] for row in rows]
    assert len(rows) >= 30
    assert words == sorted({*words}, key=str.lower)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row[2])]
    assert [name for name in names if name not in CLASSES and name not in PACKAGES] == []


def test_no_two_packages_have_a_class_of_one_name() -> None:
    assert [name for name, packages in CLASSES.items() if len(packages) > 1 and name not in SHARED] == []
