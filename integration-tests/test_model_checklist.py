"""The checklist of the model contract names tests that exist and that cite the item; and enough of it holds."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = (ROOT / "specs" / "008-model-contract.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| \*\*(MODEL-\d\d)\*\* \| .* \| ([^|]+) \|$", SPEC, flags=re.MULTILINE)
# Beyond these there are promises that are asked for elsewhere.
ITEMS = [f"MODEL-{number:02}" for number in range(1, 73)]
LEAST_THAT_HOLD = 65

_FOLDERS = [ROOT, ROOT / "integration-tests", ROOT / "integration-tests" / "support"]
_ID = re.compile(r"\bMODEL-\d\d\b")


@cache
def docstrings(path: Path) -> dict[str, str]:
    """The functions of a module, and what they say."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {function.name: ast.get_docstring(function) or "" for function in functions}


def cited(name: str) -> str:
    """What the test or the scenario says that is named in the checklist."""
    path, _, function = name.partition("::")
    [found] = [folder / path for folder in _FOLDERS if (folder / path).exists()]
    return docstrings(found)[function]


def test_each_item_has_its_row() -> None:
    assert [item for item, _ in ROWS] == ITEMS


@pytest.mark.parametrize(("item", "how"), ROWS, ids=[item for item, _ in ROWS])
def test_an_item_holds_by_tests_that_cite_it_or_says_why_it_cannot(item: str, how: str) -> None:
    assert re.match(r"(inherited; )?holds(, but for [^:]+ \(.*\))?: `|not possible: \w", how)
    names = re.findall(r"`([\w/.-]+\.py::\w+)`", how)
    assert names
    for name in names:
        assert item in _ID.findall(cited(name)), f"{name} does not cite {item}"


def test_enough_items_hold() -> None:
    assert sum("holds: " in how for _, how in ROWS) >= LEAST_THAT_HOLD


def test_no_test_cites_an_item_that_there_is_not() -> None:
    known = set(re.findall(r"\*\*(MODEL-\d\d)\*\*", SPEC))
    folders = [ROOT / "integration-tests", ROOT / "packages" / "cc-model" / "tests"]
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for name, text in docstrings(path).items():
            assert {*_ID.findall(text)} <= known, f"{path.name}::{name}"
