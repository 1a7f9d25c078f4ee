"""Stand-ins for sessions: the choice and number of processes are tested without a CLI."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest
from claude_agent_sdk import ClaudeAgentOptions
from claude_agent_sdk.types import SystemPromptPreset

from cc_session import PoolLimits
from cc_session.pool.core import Lease, PoolCore
from cc_session.pool.launch import Launch
from cc_session.pool.pooled_session import StartDay
from cc_session.pool.reuse import SessionReuse
from cc_session.pool.worker import Worker
from cc_session.process.cli_process import Memory
from cc_session.process.observer import SideEffects
from cc_session.process.settings import Settings, SettingValues, apply, can_take
from cc_types import ControlRequestError

Make = Callable[..., PoolCore]

# No process has such an id.
FIRST_PID = 10**9

# Where settings do not count, another model can be set on a process that runs.
OPTIONS = ClaudeAgentOptions(model="m", permission_mode="default", setting_sources=[])

# A CLI that takes a system prompt only at the start.
OLD_CLI = "/an/old/cli"

# Claude Code's system prompt, which is fixed at the start.
FULL = SystemPromptPreset(type="preset", preset="claude_code")


class PretendedSession:
    """The session parts that a worker uses."""

    def __init__(self, number: int, launch: Launch) -> None:
        self.number = number
        self.pid = FIRST_PID + number
        self.launch = launch
        self.side_effects = SideEffects()
        self.settings = Settings(launch.options)
        with self.settings.changing("mcp_servers", launch.settings.get("mcp_servers")):
            pass
        self.settings.begin()
        self.info = dict[str, object]()
        self.state = "idle"
        self.day = StartDay(launch.options)
        self.has_calls = self.is_waiting = False
        self.requests: list[tuple[str, object]] = []
        self.error: Exception | None = None
        self.keeps_prompt = launch.options.cli_path == OLD_CLI
        self.may_reset = asyncio.Event()
        self.may_reset.set()

    @property
    def is_running(self) -> bool:
        return self.state != "dead"

    @property
    def is_ready(self) -> bool:
        return self.state == "idle"

    def lend(self) -> "PretendedSession":
        return self

    def begin_lease(self) -> None:
        pass

    def end_lease(self) -> None:
        pass

    async def control(self, subtype: str, *, timeout: float | None = None, **fields: object) -> None:  # noqa: ASYNC109
        await asyncio.sleep(0)
        self.requests.append((subtype, *fields.values()))  # pyright: ignore[reportArgumentType] - at most one
        if self.error is not None:
            raise self.error
        if fields.get("system_prompt") == "" and not self.keeps_prompt:
            raise ControlRequestError(subtype=subtype, message="system_prompt must be a non-empty string")

    def has_other_texts(self, _servers: object) -> bool:
        return False

    async def ping(self) -> None:
        await self.control("mcp_status")

    async def apply(self, wanted: SettingValues) -> bool:
        return await apply(cast(Any, self), wanted)

    def can_take(self, wanted: SettingValues) -> bool:
        return can_take(cast(Any, self), wanted)

    async def serve(self, servers: object) -> None:
        with self.settings.changing("mcp_servers", servers):
            pass

    async def request(self, subtype: str, fields: dict[str, Any]) -> None:
        self.settings.sent("request", {"subtype": subtype, **fields})
        try:
            await self.control(subtype, **fields)
        except ControlRequestError:
            self.settings.answered("request", is_success=False)
            raise
        self.settings.answered("request", is_success=True)

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
        self.seconds = 0.0
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def hold(self) -> None:
        """Block all starts; each `permits.release()` permits a start."""
        self.permits = asyncio.Semaphore(0)

    def let_go(self) -> None:
        for _ in range(100):
            self.permits.release()

    async def __call__(self, launch: Launch) -> Worker:
        session = PretendedSession(len(self.sessions), launch)
        self.sessions.append(session)
        await self.permits.acquire()
        await self.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return Worker(launch, cast(Any, session), SessionReuse(launch, cast(Any, session)))


def launch(options: ClaudeAgentOptions | None = None, **overrides: Any) -> Launch:
    return Launch.of(options or OPTIONS, cast(Any, overrides))


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
    """Let every task run as far as it can, and every callback that wakes a task."""
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


def measuring(memory: Memory) -> Callable[[Sequence[int]], dict[int, Memory]]:
    return lambda pids: dict.fromkeys(pids, memory)
