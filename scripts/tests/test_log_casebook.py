"""The table of counting errors in cc-convert's README."""

import pytest

from log_casebook import CASES, Case, figures
from workspace import ROOT

README = (ROOT / "packages" / "cc-convert" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("case", CASES, ids=[case.error for case in CASES])
def test_the_casebook_of_the_readme_has_the_figures_of_each_class(case: Case) -> None:
    """LOG-37"""
    expected, ours = figures(case)

    assert ours.startswith("all, ")
    assert f"| {case.error} | {expected} | {ours} |" in README
