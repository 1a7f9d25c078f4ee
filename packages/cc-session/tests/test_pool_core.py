"""Assignment and number of processes, tested with fake sessions.

Over 400 lines, and in one file: each test is another case of the same decisions, over the same fake sessions.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server
from claude_agent_sdk.types import SystemPromptPreset
from typing_extensions import override

from cc_session import HookResult, Policy, PoolLimits, QueueTimeoutError, Rule, SessionPool, Timeouts, hook
from cc_session.pool.changes import Changes
from cc_session.pool.core import PoolCore
from cc_session.pool.launch import Defaults, Launch
from cc_session.pool.leases import Lease
from cc_session.pool.worker import Worker
from cc_session.process.memory import Memory
from cc_session.process.observer import SideEffects
from cc_session.process.settings import Settings, SettingValues, control_requests
from cc_types import CLIConnectionError, CLINotFoundError, ControlRequestError, ControlTimeoutError, ProcessExitedError

from .conftest import all_raise, cancelled, until

pytestmark = pytest.mark.timeout(10)

Make = Callable[..., PoolCore]

# No process has such an id.
FIRST_PID = 10**9

# Where settings do not count, another model can be set on a process that runs.
OPTIONS = ClaudeAgentOptions(model="m", permission_mode="default", setting_sources=[])


# Claude Code's own system prompt, which is fixed at the start.
FULL = SystemPromptPreset(type="preset", preset="claude_code")


class PretendedSession:
    """The parts of a session that a worker uses."""

    def __init__(self, number: int, launch: Launch) -> None:
        self.number = number
        self.pid = FIRST_PID + number
        self.launch = launch
        self.side_effects = SideEffects()
        self.settings = Settings(launch.options)
        self.info = dict[str, object]()
        self.state = "idle"
        self.requests: list[tuple[str, object]] = []
        self.error: Exception | None = None
        self.may_reset = asyncio.Event()
        self.may_reset.set()

    @property
    def is_running(self) -> bool:
        return self.state != "dead"

    def lent_for(self, _term: object) -> "PretendedSession":
        return self

    def forget_stderr(self) -> None:
        pass

    def forget_lease(self) -> None:
        pass

    async def control(self, subtype: str, *, timeout: float | None = None, **fields: object) -> None:  # noqa: ASYNC109
        await asyncio.sleep(0)
        self.requests.append((subtype, *fields.values()))  # pyright: ignore[reportArgumentType] - at most one
        if self.error is not None:
            raise self.error
        if fields.get("system_prompt") == "":
            raise ControlRequestError(subtype=subtype, message="system_prompt must be a non-empty string")

    async def apply(self, wanted: SettingValues) -> bool:
        changes = self.settings.missing(wanted)
        for subtype, fields in control_requests(changes, self.settings["model"]):
            self.settings.sent("request", {"subtype": subtype, **fields})
            await self.control(subtype, timeout=None, **fields)
            self.settings.answered("request", is_success=True)
        return bool(changes)

    async def vacate(self) -> None:
        pass

    async def reset(self) -> None:
        await self.may_reset.wait()
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        self.state = "dead"
        self.may_reset.set()


class Starter:
    """Starts processes when permitted."""

    def __init__(self) -> None:
        self.sessions: list[PretendedSession] = []
        self.permits = asyncio.Semaphore(1000)
        self.error: Exception | None = None

    def hold(self) -> None:
        """Block all starts, but for one with each `permits.release()`."""
        self.permits = asyncio.Semaphore(0)

    def let_go(self) -> None:
        for _ in range(100):
            self.permits.release()

    async def __call__(self, launch: Launch) -> Worker:
        session = PretendedSession(len(self.sessions), launch)
        self.sessions.append(session)
        await self.permits.acquire()
        if self.error is not None:
            raise self.error
        return Worker(launch, cast(Any, session))


def launch(options: ClaudeAgentOptions | None = None, **overrides: Any) -> Launch:
    defaults = Defaults(OPTIONS, None, (), None, True, Timeouts())
    return defaults.launch(options, cast(Any, overrides))


@asynccontextmanager
async def lent(pool: PoolCore, wanted: Launch | None = None, **overrides: Any) -> AsyncGenerator[PretendedSession]:
    """A lease with one message."""
    lease = Lease(wanted or launch(**overrides))
    try:
        session = cast("PretendedSession", await pool.lend(lease))
        session.side_effects.has_conversation = True
        yield session
    finally:
        pool.give_back(lease)


async def use(pool: PoolCore, wanted: Launch | None = None, **overrides: Any) -> PretendedSession:
    """Lease a session, send a message, and return when it is clean or has ended."""
    async with lent(pool, wanted, **overrides) as session:
        pass
    await all_rest()
    return session


async def all_rest() -> None:
    """Let every task run as far as it can, and every callback that wakes one."""
    for _ in range(5):
        await anyio.wait_all_tasks_blocked()
        await asyncio.sleep(0)


async def waiting(pool: PoolCore, **overrides: Any) -> "asyncio.Task[PretendedSession]":
    """A use that has to wait; returned when it does."""
    task = asyncio.ensure_future(use(pool, **overrides))
    await all_rest()
    return task


def figures(pool: PoolCore, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(pool.stats(), name) for name in names)


@pytest.fixture
async def starter() -> Starter:
    return Starter()


@pytest.fixture
async def make(starter: Starter) -> AsyncGenerator[Make]:
    pools: list[PoolCore] = []

    def make(**limits: Any) -> PoolCore:
        pools.append(PoolCore(launch, PoolLimits(**{"size": 1, "prewarm": 0} | limits), starter))
        return pools[-1]

    yield make
    for pool in pools:
        await pool.aclose()


# --- How long a lease waits ---


async def test_a_lease_that_waits_too_long_says_who_was_busy_and_holds_up_nobody(make: Make) -> None:
    """SES-87."""
    pool = make()
    hurry = replace(launch(), timeouts=Timeouts(queue=0.02))
    async with lent(pool):
        with pytest.raises(QueueTimeoutError) as raised:
            await use(pool, hurry)
        next_one = await waiting(pool)
        assert pool.stats().waiting_seconds > 0
    assert raised.value.busy_seconds[0] >= 0.02
    assert (raised.value.size, raised.value.waiting, len(raised.value.busy_seconds)) == (1, 1, 1)
    await next_one
    assert figures(pool, "queue_timeouts", "waiting", "waiting_seconds", "waits", "leases") == (1, 0, 0.0, 2, 2)
    [start, wait] = pool.stats().queue_seconds
    assert 0 <= start
    assert 0 < wait


# --- Process of a lease ---


async def test_a_process_that_needs_no_change_goes_out_first_and_of_these_the_one_used_last(make: Make) -> None:
    """SES-66."""
    pool = make(size=3)
    await pool.warm(launch(), 3)
    async with lent(pool) as last, lent(pool), lent(pool):
        pass
    await all_rest()
    assert figures(pool, "idle", "resets", "starts") == (3, 3, 3)
    assert await use(pool) is last
    assert await use(pool) is last
    async with lent(pool), lent(pool, model="other") as changed:
        pass
    await all_rest()
    await use(pool)
    assert await use(pool, model="other") is changed
    assert await use(pool) is not changed


async def test_other_options_have_processes_of_their_own(make: Make) -> None:
    """SES-61, SES-54: a lease never runs under the rules of another one."""

    @hook("Stop")
    async def look(_input: Any) -> HookResult:
        return HookResult()

    strict = Policy([Rule("*", "deny", reason="Never.")])
    servers = {"tools": create_sdk_mcp_server("tools")}
    kinds: list[dict[str, Any]] = [
        {}, {"system_prompt": FULL}, {"cwd": "elsewhere"}, {"env": {"COLOUR": "red"}}, {"policy": strict},
        {"hooks": [look]}, {"mcp_servers": servers}, {"timeouts": Timeouts(control=1)},
        {"permission_mode": "plan"},
    ]  # fmt: skip
    pool = make(size=len(kinds))
    used = [await use(pool, **kind) for kind in [*kinds, *kinds]]
    assert [session.number for session in used] == [*range(len(kinds))] * 2
    assert used[1].launch.options.system_prompt == FULL
    assert used[4].launch.policy is strict
    assert used[5].launch.hooks == (look,)
    assert await use(pool, launch(replace(OPTIONS, cwd=Path("elsewhere")))) is used[2]
    assert figures(pool, "starts", "leases", "reuses") == (len(kinds), 2 * len(kinds) + 1, len(kinds) + 1)

    pool = make(size=1)
    for mode in ("plan", "default", "plan"):  # one takes the place of the other
        await use(pool, permission_mode=mode)
    assert pool.stats().recycled == {"evicted": 2}


async def test_model_and_mode_are_set_on_a_process_that_runs(make: Make) -> None:
    """SES-61."""
    pool = make()
    session = await use(pool)
    for model, mode in (("m", "default"), ("n", "acceptEdits"), ("n", "acceptEdits"), ("m", "default")):
        await use(pool, model=model, permission_mode=mode)
    assert session.requests == [
        ("set_permission_mode", "acceptEdits"), ("apply_flag_settings", {"model": "n"}),
        ("set_permission_mode", "default"), ("apply_flag_settings", {"model": "m"}),
    ]  # fmt: skip
    assert figures(pool, "starts") == (1,)
    session.error = ControlRequestError(subtype="apply_flag_settings", message="No.")
    with pytest.raises(ControlRequestError):  # another process would refuse it as well
        await use(pool, model="other")
    session.error = None
    assert await use(pool) is session


async def test_options_are_taken_as_they_were_when_the_lease_was_asked_for(make: Make, starter: Starter) -> None:
    pool = make()
    mine = ClaudeAgentOptions(env={})
    await use(pool, launch(mine))
    mine.env["COLOUR"] = "red"
    await use(pool, launch(mine))
    mine.env.pop("COLOUR")
    wanted = launch(mine)
    mine.system_prompt = "Too late."
    await use(pool, wanted)
    assert [session.launch.options.env for session in starter.sessions] == [{}, {"COLOUR": "red"}, {}]
    assert not any(session.launch.options.system_prompt for session in starter.sessions)


async def test_an_override_that_no_option_has_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        await SessionPool().run("Hello.", **{"colour": "red"})  # pyright: ignore[reportArgumentType] - that is the point


# --- Reuse and end of processes ---

SEALED = ClaudeAgentOptions(tools=[], env={"CLAUDE_CODE_DISABLE_ATTACHMENTS": "1"})
UNDOING = [
    (SEALED, "called_tools", True, None),
    (ClaudeAgentOptions(tools=[]), "called_tools", True, "tools"),
    (replace(SEALED, tools=["Bash"]), "called_tools", True, "tools"),
    (SEALED, "others", {"mcp_set_servers"}, "changed"),
    (replace(SEALED, session_id=str(uuid4())), "talked", True, "fresh"),
    (replace(SEALED, resume="x"), "talked", True, "fresh"),
    (replace(SEALED, extra_args={"task-budget": "1"}), "talked", True, "fresh"),
]


@pytest.mark.parametrize(("options", "trace", "value", "reason"), UNDOING)
async def test_what_cannot_be_brought_back_is_replaced(
    make: Make, options: ClaudeAgentOptions, trace: str, value: object, reason: str | None
) -> None:
    """SES-62, SES-63: a conversation may also not begin empty, or belong to one session alone."""
    pool = make()
    for number in (0, 0 if reason is None else 1):
        async with lent(pool, launch(options)) as session:
            setattr(session.side_effects, trace, value)
        assert session.number == number
        await all_rest()
    assert pool.stats().recycled == ({} if reason is None else {reason: 2})


async def test_a_lease_that_did_nothing_leaves_nothing_to_be_undone(make: Make) -> None:
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


def measuring(memory: Memory) -> Callable[[Sequence[int]], dict[int, Memory]]:
    return lambda pids: dict.fromkeys(pids, memory)


async def test_a_process_is_replaced_after_so_many_uses_when_it_is_too_large_and_the_next_day(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-62, SES-66: the CLI would tell the model that the date has changed."""
    pool = make(max_uses=2)
    assert [(await use(pool)).number for _ in range(5)] == [0, 0, 1, 1, 2]
    assert pool.stats().recycled == {"uses": 2}

    monkeypatch.setattr("cc_session.pool.processes.memory_of", measuring(Memory(60, 50)))
    pool = make(max_rss_mb=111)
    assert [(await use(pool)).number for _ in range(2)] == [3, 3]
    assert pool.stats().memory_mb == 110
    pool = make(max_rss_mb=109)
    assert [(await use(pool)).number for _ in range(2)] == [4, 5]
    assert pool.stats().recycled == {"memory": 2}

    pool = make(size=2)
    await pool.warm(launch(), 2)
    async with lent(pool):
        tomorrow = SimpleNamespace(today=lambda: "tomorrow")
        monkeypatch.setattr("cc_session.pool.worker.datetime.date", tomorrow)
    assert (await use(pool)).number == 8
    assert pool.stats().recycled == {"date": 2}


async def test_a_process_that_died_is_replaced_and_its_lease_is_the_first_to_get_another(
    make: Make, starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-66, SES-67, SES-F04: in a lease, while it is idle, and where only a request shows its end."""
    pool = make()
    async with lent(pool) as session:
        await session.close()
    await (await use(pool)).close()
    monkeypatch.setattr("cc_session.pool.worker._SURE_SECONDS", -1.0)
    (await use(pool)).error = ControlTimeoutError(subtype="mcp_status", seconds=2.0)
    served: list[str] = []

    async def serve(name: str) -> None:
        async with lent(pool):
            served.append(name)

    starter.hold()
    tasks = [asyncio.ensure_future(serve(name)) for name in ("first", "second", "third")]
    await all_rest()
    starter.let_go()
    await asyncio.gather(*tasks)
    assert served == ["first", "second", "third"]
    assert pool.stats().recycled == {"dead": 3}
    assert figures(pool, "leases", "starts") == (6, 4)


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


async def test_a_way_back_that_takes_long_is_not_waited_for_and_one_without_an_end_is_given_up(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-67, SES-F05: another process is started meanwhile, if there is room."""
    monkeypatch.setattr("cc_session.pool.processes._RESET_SOON_SECONDS", 60.0)
    pool = make(size=2)
    async with lent(pool) as slow:
        slow.may_reset.clear()
    next_one = await waiting(pool)
    assert not next_one.done()
    assert figures(pool, "resetting", "starting", "waiting", "running") == (1, 0, 1, 1)
    slow.may_reset.set()
    assert await next_one is slow

    monkeypatch.setattr("cc_session.pool.processes._RESET_SOON_SECONDS", 0.0)
    async with lent(pool) as slow:
        slow.may_reset.clear()
    assert (await use(pool)).number == 1
    slow.may_reset.set()
    await all_rest()

    monkeypatch.setattr("cc_session.pool.core._RESET_SECONDS", 0.01)
    async with lent(pool) as slow:
        slow.may_reset.clear()
    await until(lambda: pool.stats().recycled == {"reset": 1})


# --- Waiting leases ---


async def test_leases_are_served_in_the_order_in_which_they_came(make: Make) -> None:
    """SES-66: for any options, so that none waits for ever."""
    pool = make()
    order: list[str] = []

    async def lease(name: str) -> None:
        async with lent(pool, env={"KIND": name[0]}):
            order.append(name)

    async with lent(pool):
        tasks = [asyncio.ensure_future(lease(name)) for name in ("B0", "A1", "B2", "A3")]
        await all_rest()
        assert (order, *figures(pool, "waiting")) == ([], 4)
    await asyncio.gather(*tasks)
    assert order == ["B0", "A1", "B2", "A3"]
    assert figures(pool, "waits", "leases") == (5, 5)

    async with lent(pool):
        others = [await waiting(pool) for _ in range(3)]
        others[1].cancel()
        await all_rest()
        assert figures(pool, "waiting") == (2,)
    await asyncio.wait(others, timeout=10)
    assert [other.cancelled() for other in others] == [False, True, False]
    assert [other.done() for other in others] == [True, True, True]


async def test_what_the_first_has_no_use_for_goes_to_those_behind_it(make: Make, starter: Starter) -> None:
    """SES-66."""
    pool = make(size=2, start_limit=1)
    starter.hold()
    first = await waiting(pool, env={"KIND": "A"})
    second = await waiting(pool, env={"KIND": "B"})
    starter.permits.release()
    await all_rest()
    assert (first.done(), second.done(), len(starter.sessions)) == (True, False, 2)
    third = await waiting(pool, env={"KIND": "A"})
    assert third.done()
    starter.let_go()
    assert (await second).launch.options.env == {"KIND": "B"}


async def test_a_start_that_nobody_waits_for_any_more_is_not_lost(make: Make, starter: Starter) -> None:
    """SES-24, SES-65."""
    pool = make()
    starter.hold()
    task = await waiting(pool)
    assert figures(pool, "starting") == (1,)
    task.cancel()
    starter.let_go()
    await all_rest()
    assert figures(pool, "starting", "idle") == (0, 1)
    assert (await use(pool)).number == 0


@pytest.mark.parametrize("is_sure", [True, False])
async def test_a_lease_cancelled_at_any_moment_is_given_back(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_sure: bool
) -> None:
    """SES-75: also in the step of the loop in which its process becomes free."""
    monkeypatch.setattr("cc_session.pool.worker._SURE_SECONDS", 1.0 if is_sure else -1.0)
    pool = make()
    cancelled = 0
    for step in range(20):
        task = asyncio.ensure_future(use(pool, model=str(step)))
        for _ in range(step):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        cancelled += task.cancelled()
        await all_rest()
        assert figures(pool, "busy", "resetting", "waiting") == (0, 0, 0)
    assert cancelled > 5
    assert not caplog.records
    await use(pool)
    assert figures(pool, "idle", "starts", "running") == (1, 1, 1)


# --- Number of processes ---


async def test_there_are_never_more_processes_than_the_size_nor_more_starts_than_the_limit(
    make: Make, starter: Starter
) -> None:
    """SES-25, SES-66."""
    pool = make(size=3)
    starter.hold()
    tasks = [asyncio.ensure_future(use(pool)) for _ in range(9)]
    for starting, starts in ((2, 2), (2, 3), (1, 3)):
        await all_rest()
        assert (*figures(pool, "starting"), len(starter.sessions)) == (starting, starts)
        starter.permits.release()
    starter.let_go()
    await asyncio.gather(*tasks)
    assert figures(pool, "starts", "leases", "idle") == (3, 9, 3)


async def test_warm_returns_when_the_processes_are_ready(make: Make, starter: Starter) -> None:
    """SES-65."""
    pool = make(size=3)
    starter.hold()
    warming = asyncio.ensure_future(pool.warm(launch(), 2))
    starter.permits.release()
    await all_rest()
    assert not warming.done()
    starter.let_go()
    await warming
    assert figures(pool, "idle", "starts") == (2, 2)
    async with lent(pool):
        await pool.warm(launch(), 2)  # the leased one counts
        assert figures(pool, "starts") == (2,)
        await pool.warm(launch(), 3)
        assert figures(pool, "starts") == (3,)
    await all_rest()
    await pool.warm(launch(env={"KIND": "Another."}), 1)  # in the place of an idle one
    assert pool.stats().recycled == {"evicted": 1}
    pool = make(size=2)  # for more than it holds, which it does in turn
    await asyncio.gather(*(pool.warm(launch(env={"KIND": kind}), 2) for kind in ("A", "B", "A")))
    assert figures(pool, "starts") == (6,)
    assert pool.stats().recycled == {"evicted": 4}

    for count in (4, -1):
        with pytest.raises(ValueError, match="cannot be warm"):
            await SessionPool(limits=PoolLimits(size=3)).warm(count)


async def test_prewarmed_processes_are_there_before_they_are_needed(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-65: with a lease's first moments left to the lease, which a start would slow down."""
    pool = make(size=4, prewarm=2)
    await pool.prewarm()
    await all_rest()
    assert figures(pool, "idle") == (2,)
    async with lent(pool):
        await all_rest()
        assert figures(pool, "idle", "starting") == (1, 0)
    await all_rest()
    assert figures(pool, "idle", "starts") == (2, 2)
    await pool.aclose()
    monkeypatch.setattr("cc_session.pool.core._CHECK_SECONDS", 0.001)
    pool = make(size=4, prewarm=2)
    await pool.prewarm()
    await all_rest()
    async with lent(pool), lent(pool):
        await until(lambda: figures(pool, "idle") == (2,))
        async with lent(pool), lent(pool):
            await asyncio.sleep(0.02)  # some more checks
            assert figures(pool, "running") == (4,)  # and no more, since that is the size
    assert figures(pool, "leases", "waits", "starts") == (4, 0, 4)


async def test_no_more_are_started_than_the_memory_allows(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-66, ARCH-06: but one is always allowed, and pages that they share count once."""
    monkeypatch.setattr("cc_session.pool.processes.memory_of", measuring(Memory(100, 50)))
    for limit, starts in ((1, 1), (249, 1), (251, 2)):
        pool = make(size=4, max_total_mb=limit)
        await use(pool)
        await asyncio.gather(*(use(pool) for _ in range(4)))
        assert figures(pool, "starts") == (starts,)
        await use(pool, env={"KIND": "Another."})
        assert pool.stats().recycled == {"evicted": 1}


async def test_processes_that_are_idle_for_long_end_and_prewarmed_ones_stay_and_are_replaced_when_they_die(
    make: Make, starter: Starter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SES-65, SES-66, SES-67: before the first lease."""
    monkeypatch.setattr("cc_session.pool.core._CHECK_SECONDS", 0.01)
    pool = make(size=4, prewarm=1, idle_seconds=0.01)
    await pool.warm(launch(), 3)
    async with lent(pool, env={"KIND": "Leased."}) as leased:
        await until(lambda: pool.stats().recycled == {"idle": 2})
        await asyncio.sleep(0.05)  # some more checks
        assert figures(pool, "idle", "busy", "starts") == (1, 1, 4)
        assert leased.state == "idle"
        [prewarmed] = [session for session in starter.sessions if session.is_running and session is not leased]
        await prewarmed.close()
        await until(lambda: pool.stats().recycled == {"idle": 2, "dead": 1} and pool.stats().idle == 1)
        assert figures(pool, "starts") == (5,)


# --- Errors ---


async def test_each_lease_that_waits_hears_why_its_process_cannot_be_started_and_the_next_one_tries_again(
    make: Make, starter: Starter
) -> None:
    """SES-F01, SES-56, SES-87: a start that fails by a timeout is no queue."""
    pool = make()
    starter.hold()
    starter.error = ControlTimeoutError(subtype="initialize", seconds=1.0)
    tasks = [await waiting(pool) for _ in range(2)]
    warming = asyncio.ensure_future(pool.warm(launch(), 1))
    starter.let_go()
    await all_raise(ControlTimeoutError, *tasks, warming)
    assert figures(pool, "failed_starts", "starts", "starting", "waiting") == (3, 0, 0, 0)
    starter.error = None
    await use(pool)
    assert figures(pool, "starts") == (1,)


@pytest.mark.parametrize("prewarm", [0, 1])
async def test_a_failed_start_of_a_lease_that_was_cancelled_ends_no_prewarming(
    make: Make, starter: Starter, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, prewarm: int
) -> None:
    """SES-65."""
    monkeypatch.setattr("cc_session.pool.core._CHECK_SECONDS", 0.001)
    pool = make(size=2, prewarm=prewarm)
    starter.hold()
    starter.error = CLINotFoundError(path="/nowhere")
    await cancelled(await waiting(pool, **({"cwd": "/elsewhere"} if prewarm else {})))
    await all_rest()
    starter.permits.release()
    await all_rest()
    assert "A Claude Code process for later requests could not be started" in caplog.text
    starter.error = None
    starter.let_go()
    await pool.warm(launch(), 1)
    await until(lambda: figures(pool, "idle", "failed_starts") == (max(prewarm, 1), 1))


async def test_prewarmed_processes_that_cannot_be_started_are_reported_and_tried_again_with_the_next_lease(
    make: Make, starter: Starter, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-65."""
    starter.error = CLINotFoundError(path="/nowhere")
    pool = make(size=3, prewarm=2)
    await pool.prewarm()
    await all_rest()
    assert figures(pool, "failed_starts", "starting") == (2, 0)  # two were started at once
    assert "A Claude Code process for later requests could not be started" in caplog.text
    starter.error = None
    await use(pool)
    await pool.prewarm()
    await all_rest()
    assert figures(pool, "idle", "failed_starts") == (2, 2)


@pytest.mark.parametrize(
    ("retries", "has_answered", "deaths", "is_answered"),
    [(0, False, 1, False), (1, False, 1, True), (1, False, 2, False), (2, False, 2, True), (5, True, 1, False)],
)
async def test_a_turn_is_repeated_as_often_as_was_asked_for_until_its_answer_has_begun(
    make: Make, starter: Starter, retries: int, has_answered: bool, deaths: int, is_answered: bool
) -> None:
    """SES-73."""
    pool = make()

    async def ask(asked: Any) -> Any:
        session: PretendedSession = asked
        session.side_effects.answered = has_answered
        if session.number < deaths:
            await session.close()
            raise ProcessExitedError(exit_code=-9)
        return "An answer."

    running = pool.run(launch(), ask, retries)
    if is_answered:
        assert await running == "An answer."
    else:
        with pytest.raises(ProcessExitedError):
            await running
    await all_rest()
    assert pool.stats().leases == len(starter.sessions) == min(deaths + 1, 1 if has_answered else retries + 1)
    assert figures(pool, "busy") == (0,)


async def test_closing_fails_what_waits_and_ends_what_runs(make: Make, starter: Starter) -> None:
    """SES-23, SES-27."""
    pool = make(size=3)
    idle = await use(pool, env={"KIND": "Idle."})
    async with lent(pool) as leased:
        starter.hold()
        tasks = [await waiting(pool, env={"KIND": kind}) for kind in ("Another.", "A third.")]
        tasks.append(asyncio.ensure_future(cast("Any", pool.warm(launch(), 2))))
        await all_rest()
        assert figures(pool, "busy", "starting", "waiting") == (1, 2, 2)
        await asyncio.gather(pool.aclose(), pool.aclose())
        late = use(pool), pool.warm(launch(), 1)
        await all_raise(CLIConnectionError, *tasks, *late, match="closed")
        assert (idle.state, leased.state) == ("dead", "dead")
    assert figures(pool, "idle", "busy", "resetting", "starting", "waiting") == (0, 0, 0, 0, 0)
    assert not pool.stats().recycled.keys() - {"evicted"}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"size": 0}, "size is 0"),
        ({"size": 2, "prewarm": 3}, "prewarm is 3"),
        ({"start_limit": 0}, "start_limit is 0"),
        ({"max_uses": 0}, "max_uses is 0"),
        ({"max_rss_mb": -1}, "max_rss_mb is -1"),
        ({"idle_seconds": 0}, "idle_seconds is 0"),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PoolLimits(**limits)


@pytest.mark.parametrize(("name", "advice"), [("size", r": use limits=PoolLimits\(size=\.\.\.\)"), ("colour", "$")])
def test_limits_outside_of_their_class_are_refused_with_its_name(name: str, advice: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'{advice}"):
        SessionPool(**{name: 4})  # pyright: ignore[reportArgumentType] - that is the point


# --- System prompts ---


async def test_a_process_takes_any_system_prompt_and_goes_back_to_none_never(make: Make) -> None:
    """SES-94: and one that never had a prompt serves leases with and without."""
    pool = make(size=2)
    plain = await use(pool)
    for prompt in ("One.", "Two.", "Two."):
        assert await use(pool, system_prompt=prompt) is plain
    assert [request for request in cast("list[Any]", plain.requests) if request[0] == "set_model" and request[2]] == [
        ("set_model", "m", "One.", True),
        ("set_model", "m", "Two.", True),
    ]
    other = await use(pool)
    assert other is not plain
    assert await use(pool, system_prompt="Three.") is plain
    assert await use(pool) is other
    assert figures(pool, "starts") == (2,)


async def test_a_cli_that_keeps_its_system_prompt_has_a_process_for_each_and_says_so_once(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """SES-94."""
    old = replace(OPTIONS, cli_path="/an/old/cli")
    Changes.of(old).of_prompt = False
    pool = make(size=3)
    prompts = ("One.", "Two.", "Three.", "One.", "Two.", "One.")
    used = [await use(pool, launch(old, system_prompt=prompt)) for prompt in prompts]
    assert [session.number for session in used] == [0, 1, 2, 0, 1, 0]
    [warning] = caplog.messages
    assert "claude-agent-sdk 0.2.122" in warning


async def test_a_lease_that_no_process_can_serve_fails_in_the_end(make: Make, starter: Starter) -> None:
    """SES-84."""

    class Impossible(Lease):
        @override
        async def prepare(self, worker: Worker) -> None:
            raise CLIConnectionError(reason="No way")

    pool = make(size=2, prewarm=0)
    lease = Impossible(launch())
    with pytest.raises(CLIConnectionError, match="No way"):
        await pool.acquire(lease)
    pool.give_back(lease)
    assert len(starter.sessions) == 3
    assert await use(pool) is starter.sessions[3]
