"""A short form of scripts/server_load.py."""

from __future__ import annotations

import pytest

from server_load import measure


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_budgets_and_figures_hold_under_load() -> None:
    """MSG-103, MSG-104, MSG-106. The long form runs five minutes."""
    lines, problems = await measure(seconds=10, at_once=4)
    assert not problems, [*lines, *problems]
