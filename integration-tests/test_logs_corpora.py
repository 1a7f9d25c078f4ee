"""Real CLI logs, also from older versions: the sums equal the usage of all calls that the API served."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial

import pytest

from cli_logs import CLI
from commands import CheckError, wheel
from log_corpora import SCENARIOS, at_random, killed_after_a_compaction, make

QUICK = ("killed_between",)
# claude-agent-sdk versions, with CLI 2.1.81 to 2.1.330. From the sixth on there are totals; only the last marks copies.
OLDER = ("0.1.50", "0.1.81", "0.2.110", "0.2.140", "0.2.155", "0.2.170", "0.2.180", "0.2.187")


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
@pytest.mark.timeout(1800)  # with the download of 160 MB
@pytest.mark.parametrize("version", OLDER)
async def test_the_sums_of_an_older_cli_are_what_the_api_served(version: str) -> None:
    """LOG-32, LOG-33: without compactions where the CLI notes no totals."""
    async with AsyncExitStack() as stack:
        try:
            cli, _ = await stack.enter_async_context(wheel(version))
        except CheckError as error:
            pytest.skip(f"no wheel of claude-agent-sdk {version}: {error}")
        reports = {name: await asyncio.to_thread(make, steps, cli) for name, steps in SCENARIOS.items()}
    assert {name: differences for name, differences in reports.items() if differences} == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_the_sums_after_random_steps_are_what_the_api_served(seed: int) -> None:
    """LOG-32, LOG-33"""
    assert make([partial(at_random, seed=seed)], CLI) == []


@pytest.mark.slow
def test_unwritten_usage_of_a_killed_process_is_in_no_sum() -> None:
    """LOG-34: only the process's final total contains a compaction."""
    [difference] = make(killed_after_a_compaction, CLI)

    assert "the API served" in difference
