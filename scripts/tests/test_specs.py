"""Ids and names in the specifications: each id is defined once, and cited where specs/README.md says; names exist."""

import ast
import re
from collections import Counter, defaultdict
from importlib import import_module

from workspace import ROOT

PLACES = (
    "packages/*/tests/**/*.py",
    "integration-tests/**/*.py",
    "scripts/tests/*.py",
    "scripts/bench/*.py",
    "pyproject.toml",
    ".ci/run",
)

_SUBJECTS = "ARCH|SES|SDK|IPC|MSG|MODEL|LOOP|LOG|LANG"
_BEGINNING = rf"(?:{_SUBJECTS})-(?:[A-Z]+\d*-)*[A-Z]*"
# A requirement has the status in the text after the id, a decision record in the line after the title.
_DEFINITION = re.compile(
    rf"\*\*({_BEGINNING}\d+)\*\*(?:(?::| \|) (?P<entry>superseded)|[^*|]*\*\*Status:\*\* (?P<line>superseded))?"
)
_CITATION = re.compile(rf"\b({_BEGINNING})(\d+)(?: to (?:\1)?(\d+))?\b")


def defined(text: str) -> list[tuple[str, bool]]:
    """Return the ids that a specification defines, each with true if it is in force."""
    return [(match[1], not (match["entry"] or match["line"])) for match in _DEFINITION.finditer(text)]


def cited(text: str) -> set[str]:
    """Return the ids in a text; a range cites each id from the first to the last."""
    return {
        f"{beginning}{number:0{len(first)}}"
        for beginning, first, last in _CITATION.findall(text)
        for number in range(int(first), int(last or first) + 1)
    }


DEFINED = [entry for path in sorted((ROOT / "specs").glob("[0-9]*.md")) for entry in defined(path.read_text("utf-8"))]
IN_FORCE = {name for name, is_in_force in DEFINED if is_in_force}
CITATIONS = {name for place in PLACES for path in ROOT.glob(place) for name in cited(path.read_text(encoding="utf-8"))}


def test_each_id_is_defined_once() -> None:
    assert len(IN_FORCE) > 500
    assert [name for name, count in Counter(name for name, _ in DEFINED).items() if count > 1] == []


def test_each_id_in_force_is_cited() -> None:
    missing = sorted(IN_FORCE - CITATIONS)
    assert not missing, f"no proof cites {', '.join(missing)} (specs/README.md: where a citation may stand)"


def test_each_cited_id_is_defined_and_in_force() -> None:
    unknown = sorted(CITATIONS - IN_FORCE)
    assert not unknown, f"specs/ does not define, or has superseded: {', '.join(unknown)}"


def test_a_range_cites_each_id_and_a_definition_shows_its_status() -> None:
    assert cited("ID-07 to ID-09, ID-11, ID-E1 to 2".replace("ID", "LOOP")) == {
        f"LOOP-{number}" for number in ("07", "08", "09", "11", "E1", "E2")
    }
    assert defined("**LOOP-07**: superseded by it\n**LOOP-08**: It was superseded.") == [
        ("LOOP-07", False),
        ("LOOP-08", True),
    ]


_ARCHITECTURE = (ROOT / "specs" / "001-architecture.md").read_text("utf-8")
PACKAGES = {path.name: path for path in ROOT.glob("packages/*/src/*") if (path / "__init__.py").is_file()}
# cc-session also raises these as instances of the SDK's classes.
SHARED = {
    "CLIConnectionError", "CLIJSONDecodeError", "CLINotFoundError", "MessageParseError", "ProcessExitedError",
}  # fmt: skip


# Programs load these by name; nobody imports them.
PLUGINS = {"cc_ipc_bridge", "cc_model_pytest"}


def table(heading: str) -> list[list[str]]:
    section = _ARCHITECTURE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
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
    assert len(rows) >= 15
    assert words == sorted({*words}, key=str.lower)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row[2])]
    assert [name for name in names if name not in CLASSES and name not in PACKAGES] == []


def test_no_two_packages_have_a_class_of_one_name() -> None:
    assert [name for name, packages in CLASSES.items() if len(packages) > 1 and name not in SHARED] == []
