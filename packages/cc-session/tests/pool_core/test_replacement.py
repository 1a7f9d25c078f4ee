"""Reset and replacement of processes."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from types import SimpleNamespace
from uuid import uuid4

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from cc_session.pool.core import Lease
from cc_session.process.cli_process import Memory
from cc_session.process.settings import SettingValues
from cc_types import ControlRequestError, ProcessExitedError

from ..conftest import until
from .conftest import OPTIONS, Make, Starter, all_rest, figures, launch, lent, measuring, use, waiting

pytestmark = pytest.mark.timeout(10)


SEALED = ClaudeAgentOptions(tools=[], env={"CLAUDE_CODE_DISABLE_ATTACHMENTS": "1"})
UNDOING = [
    (SEALED, "called_tools", {"Bash"}, None),
    (ClaudeAgentOptions(tools=[]), "called_tools", {"Bash"}, "tools"),
    (replace(SEALED, tools=["Bash"]), "called_tools", {"Bash"}, "tools"),
    (SEALED, "others", {"mcp_set_servers"}, "changed"),
    (replace(SEALED, session_id=str(uuid4())), "has_conversation", True, "fresh"),
    (replace(SEALED, resume="x"), "has_conversation", True, "fresh"),
    (replace(SEALED, extra_args={"task-budget": "1"}), "has_conversation", True, "fresh"),
]


@pytest.mark.parametrize(("options", "trace", "value", "reason"), UNDOING)
async def test_changes_that_cannot_be_undone_replace_the_process(
    make: Make, options: ClaudeAgentOptions, trace: str, value: object, reason: str | None
) -> None:
    """SES-62, SES-63: a conversation may also not begin empty, or belong to a single session."""
    pool = make()
    for number in (0, 0 if reason is None else 1):
        async with lent(pool, launch(options)) as session:
            setattr(session.side_effects, trace, value)
        assert session.number == number
        await all_rest()
    assert pool.stats().recycled == ({} if reason is None else {reason: 2})


async def test_a_turn_that_nobody_asked_for_reaches_no_lease(make: Make) -> None:
    """SES-62: Claude Code runs scheduled prompts by itself, also in a process that is idle."""
    pool = make()
    session = await use(pool)
    await all_rest()
    session.side_effects.answered = True
    assert (await use(pool)).number == session.number + 1
    assert pool.stats().recycled == {"changed": 1}


async def test_a_turn_that_begins_while_a_lease_is_prepared_reaches_it_neither(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-62"""
    pool = make()
    session = await use(pool)
    await all_rest()

    async def apply(_wanted: SettingValues) -> bool:
        session.side_effects.has_conversation = True
        return False

    monkeypatch.setattr(session, "apply", apply)
    assert (await use(pool)).number == session.number + 1


async def test_a_lease_without_effects_needs_no_reset(make: Make) -> None:
    """SES-63: also with options that serve one conversation."""
    pool, once = make(), launch(replace(OPTIONS, resume="earlier"))
    pool.give_back(lease := Lease(once))
    with pytest.raises(asyncio.CancelledError):
        await pool.lend(lease)  # returned before it began
    for number in range(3):
        async with lent(pool, once) as session:
            session.side_effects.clear()
        assert (await use(pool, once)) is session
        assert session.number == number
        assert pool.stats().recycled == {"fresh": number + 1}
        assert figures(pool, "idle", "resets") == (0, 0)


async def test_a_process_is_replaced_after_its_last_use(make: Make) -> None:
    """SES-62."""
    pool = make(max_uses=2)
    assert [(await use(pool)).number for _ in range(5)] == [0, 0, 1, 1, 2]
    assert pool.stats().recycled == {"uses": 2}


@pytest.mark.parametrize(("limit", "numbers", "recycled"), [(111, [0, 0], {}), (109, [0, 1], {"memory": 2})])
async def test_a_process_that_is_too_large_is_replaced(
    make: Make, monkeypatch: pytest.MonkeyPatch, limit: float, numbers: list[int], recycled: dict[str, int]
) -> None:
    """SES-66."""
    monkeypatch.setattr("cc_session.pool.processes.memory_of", measuring(Memory(60, 50)))
    pool = make(max_rss_mb=limit)
    assert [(await use(pool)).number for _ in range(2)] == numbers
    assert pool.stats().memory_mb == (0 if recycled else 110)
    assert pool.stats().recycled == recycled


@pytest.mark.parametrize(
    ("zone", "is_replaced"),
    [("UTC", True), ("nowhere", True), ("Atlantic/Azores", False), (":Atlantic/Azores", False), ("Asia/Tokyo", False)],
)
async def test_processes_are_replaced_the_next_day(
    zone: str, is_replaced: bool, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-62: of their time zone, since the CLI would tell the model that the date has changed."""

    def now(zone: tzinfo | None) -> datetime:
        return time.astimezone(zone)

    time = datetime(2026, 11, 29, 23, 30, tzinfo=UTC)
    monkeypatch.setattr("cc_session.pool.pooled_session.datetime", SimpleNamespace(now=now))
    pool, options = make(size=2), replace(OPTIONS, env={"TZ": zone})
    await pool.warm(launch(options), 2)
    async with lent(pool, launch(options)):
        time += timedelta(hours=1)
    assert (await use(pool, launch(options))).number == (2 if is_replaced else 0)
    assert pool.stats().recycled == ({"date": 2} if is_replaced else {})


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (ControlRequestError(subtype="rewind_conversation", message="No."), "idle", "reset"),
        (ProcessExitedError(exit_code=-9), "dead", "dead"),
        (None, "busy", "reset"),
    ],
)
async def test_a_process_whose_way_back_fails_is_replaced(
    make: Make, error: Exception | None, state: str, reason: str
) -> None:
    """SES-67."""
    pool = make()
    async with lent(pool) as session:
        session.error = error
        session.state = "busy"
    session.state = state
    assert (await use(pool)).number == 1
    assert pool.stats().recycled == {reason: 1}
    assert session.state == "dead"


async def test_a_process_that_started_while_a_variable_changed_serves_only_a_lease_that_waited(
    make: Make, starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-133: nobody knows which value it has."""
    pool = make(size=2)
    starter.hold()
    lease, warm = await waiting(pool), asyncio.create_task(pool.warm(launch(), 2))
    await all_rest()
    with monkeypatch.context() as changed:
        changed.setenv("DISABLE_PROMPT_CACHING", "1")
        starter.let_go()
        session = await lease
        await warm
    assert session.number in (0, 1)
    assert (await use(pool)).number not in (0, 1)
    assert pool.stats().recycled == {"changed": 2}


async def test_a_reset_without_an_end_is_given_up(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-67, SES-34."""
    monkeypatch.setattr("cc_session.pool.core._RESET_SECONDS", 0.01)
    pool = make()
    async with lent(pool) as slow:
        slow.may_reset.clear()
    await until(lambda: pool.stats().recycled == {"reset": 1})
