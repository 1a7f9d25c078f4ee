"""The checklist of the model contract names tests that exist and that cite the item; and most items hold."""

import ast
import re

import pytest

from cited_tests import NAME, ROOT, Function, cited

SPEC = (ROOT / "specs" / "008-model-contract.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| \*\*(MODEL-\d\d)\*\* \| .* \| ([^|]+) \|$", SPEC, flags=re.MULTILINE)
# The other promises are checked elsewhere.
ITEMS = [f"MODEL-{number:02}" for number in range(1, 73)]
LEAST_THAT_HOLD = 65

_ID = re.compile(r"\bMODEL-\d\d\b")


def items(function: Function) -> set[str]:
    """Return the items that a function cites."""
    return {*_ID.findall(ast.get_docstring(function) or "")}


def is_expected_to_fail(function: Function) -> bool:
    """Return whether a test has the `xfail` mark, or a scenario a defect."""
    return any(re.search(r"\bxfail\(|\bdefect=", ast.unparse(decorator)) for decorator in function.decorator_list)


def test_each_item_has_its_row() -> None:
    assert [item for item, _ in ROWS] == ITEMS


@pytest.mark.parametrize(("item", "how"), ROWS, ids=[item for item, _ in ROWS])
def test_an_item_has_tests_that_cite_it_or_a_reason(item: str, how: str) -> None:
    assert re.match(r"(inherited; )?holds(, but for [^:]+ \(.*\))?: `|not possible: \w", how)
    names = NAME.findall(how)
    assert names
    for name in names:
        assert item in items(cited(name)), f"{name} does not cite {item}"


@pytest.mark.parametrize(("item", "how"), ROWS, ids=[item for item, _ in ROWS])
def test_expected_failures_are_named_as_exceptions_of_an_item(item: str, how: str) -> None:
    exceptions, _, rest = how.partition("): ") if ", but for " in how else ("", "", how)
    assert not [name for name in NAME.findall(rest) if is_expected_to_fail(cited(name))]
    assert all(is_expected_to_fail(cited(name)) for name in NAME.findall(exceptions))


def test_enough_items_hold() -> None:
    assert sum("holds: " in how for _, how in ROWS) >= LEAST_THAT_HOLD
