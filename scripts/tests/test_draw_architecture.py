"""The page about the architecture, from imports and docstrings."""

from graphlib import CycleError

import pytest

from cc_session.session.sent_message import SESSION_STATES, TRANSITIONS, TurnEvent, TurnState
from draw_architecture import Part, levels, main


def test_the_page_agrees_with_the_code() -> None:
    assert main(["--check"]) == 0


def test_a_part_stands_in_the_lowest_row_above_its_imports() -> None:
    parts = [Part("top", frozenset({"left", "base"}), ""), Part("left", frozenset({"base"}), "")]
    rows = levels([*parts, Part("base", frozenset(), ""), Part("alone", frozenset(), "")])
    assert [[part.name for part in row] for row in rows] == [["top"], ["left"], ["alone", "base"]]


def test_parts_that_import_each_other_are_an_error() -> None:
    with pytest.raises(CycleError):
        levels([Part("left", frozenset({"right"}), ""), Part("right", frozenset({"left"}), "")])


def test_every_turn_can_end_and_a_session_is_free_only_then() -> None:
    reached = {TurnState.OVER}
    while more := {state for (state, _), following in TRANSITIONS.items() if following in reached} - reached:
        reached |= more
    assert reached == {*TurnState} == {*SESSION_STATES}
    assert not any(state is TurnState.OVER for state, _ in TRANSITIONS)
    for state in {*TurnState} - {TurnState.NEW, TurnState.OVER}:
        assert SESSION_STATES[state] != "idle"
        assert (state, TurnEvent.SEND) not in TRANSITIONS
