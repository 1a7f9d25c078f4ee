"""The page about the architecture, from imports and docstrings."""

from draw_architecture import main


def test_the_page_agrees_with_the_code() -> None:
    assert main(["--check"]) == 0
