"""The page about the architecture, from imports and docstrings."""

from cc_session.session.sent_message import SESSION_STATES, TRANSITIONS, TurnEvent, TurnState
from draw_architecture import Part, levels, main


def test_the_page_agrees_with_the_code() -> None:
    assert main(["--check"]) == 0


def test_a_part_stands_above_its_imports_and_beside_mutual_ones() -> None:
    imports = {
        "top": {"left", "right"},
        "left": {"right", "base"},
        "right": {"left"},
        "base": set[str](),
        "alone": set[str](),
    }
    rows = levels(Part(name, frozenset(others), "") for name, others in imports.items())
    assert [[part.name for part in row] for row in rows] == [["top"], ["left", "right"], ["alone", "base"]]


def test_every_turn_can_end_and_a_session_is_free_only_then() -> None:
    reached = {TurnState.OVER}
    while more := {state for (state, _), following in TRANSITIONS.items() if following in reached} - reached:
        reached |= more
    assert reached == {*TurnState} == {*SESSION_STATES}
    assert not any(state is TurnState.OVER for state, _ in TRANSITIONS)
    for state in {*TurnState} - {TurnState.NEW, TurnState.OVER}:
        assert SESSION_STATES[state] != "idle"
        assert (state, TurnEvent.SEND) not in TRANSITIONS
