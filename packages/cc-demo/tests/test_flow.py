"""Text that is wrapped while it arrives."""

from io import StringIO

import pytest
from rich.console import Console

from cc_demo.screen import Flow

TEXT = "A model writes its text in pieces of any length, and no line may be broken within a word."
WRAPPED = ["A model writes its", "text in pieces of", "any length, and no", "line may be broken", "within a word."]


def flowed(pieces: list[str], indent: int = 0, width: int = 20) -> list[str]:
    file = StringIO()
    flow = Flow(Console(file=file, width=width), indent)
    for piece in pieces:
        flow.write(piece)
    flow.end()
    return file.getvalue().splitlines()


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_lines_do_not_depend_on_the_pieces(size: int) -> None:
    assert flowed([TEXT[at : at + size] for at in range(0, len(TEXT), size)]) == WRAPPED


def test_later_lines_begin_at_the_indent() -> None:
    # The first line begins at the cursor.
    assert flowed([TEXT], indent=4, width=24) == [WRAPPED[0], *("    " + line for line in WRAPPED[1:])]


def test_line_breaks_in_the_text_stay() -> None:
    assert flowed(["One.\nTwo.\n\nThree."]) == ["One.", "Two.", "", "Three."]


def test_a_word_longer_than_a_line_is_cut() -> None:
    assert flowed(["a " + "b" * 12 + " c"], width=5) == ["a", "bbbbb", "bbbbb", "bb c"]


def test_wide_characters_take_two_columns() -> None:
    assert flowed(["東京 大阪"], width=8) == ["東京", "大阪"]


def test_markup_in_the_text_is_text() -> None:
    assert flowed(["[red]a[/red] :smile:"]) == ["[red]a[/red] :smile:"]
