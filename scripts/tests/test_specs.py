"""Ids in the specifications: each is defined once, and cited where specs/README.md says if it is in force."""

import re
from collections import Counter

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
# A requirement has the status in the cell after the id, a decision record in the line after the title.
_DEFINITION = re.compile(
    rf"\*\*({_BEGINNING}\d+)\*\*(?: \| (?P<cell>superseded)|[^*|]*\*\*Status:\*\* (?P<line>superseded))?"
)
_CITATION = re.compile(rf"\b({_BEGINNING})(\d+)(?: to (?:\1)?(\d+))?\b")


def defined(text: str) -> list[tuple[str, bool]]:
    """Return the ids that a specification defines, each with true if it is in force."""
    return [(match[1], not (match["cell"] or match["line"])) for match in _DEFINITION.finditer(text)]


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
    assert defined("**LOOP-07** | superseded by it |\n**LOOP-08** | It was superseded. |") == [
        ("LOOP-07", False),
        ("LOOP-08", True),
    ]
