"""Real CLI logs: the sums equal the usage of all calls that the API served."""

import pytest

from cli_logs import CLI
from log_corpora import SCENARIOS, killed_after_a_compaction, make

QUICK = ("killed_between",)


@pytest.mark.deaths
@pytest.mark.parametrize("name", QUICK)
def test_the_sums_are_what_the_api_served(name: str) -> None:
    """LOG-32, LOG-33: session by session, and no CLI total differs."""
    assert make(SCENARIOS[name], CLI) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - {*QUICK}))
def test_the_sums_of_every_scenario_are_what_the_api_served(name: str) -> None:
    """LOG-32, LOG-33"""
    assert make(SCENARIOS[name], CLI) == []


@pytest.mark.slow
def test_unwritten_usage_of_a_killed_process_is_in_no_sum() -> None:
    """LOG-34: only the process's final total contains a compaction."""
    [difference] = make(killed_after_a_compaction, CLI)

    assert "the API served" in difference
