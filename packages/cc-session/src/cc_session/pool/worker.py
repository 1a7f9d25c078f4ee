"""A process in a pool: start parameters, use, and reset.

Lives on the background loop; the pool assigns workers to leases.
"""

import asyncio
import logging
import os
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Literal, Self, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from claude_agent_sdk import ClaudeAgentOptions
from claude_agent_sdk.types import SystemPromptCustom

from cc_types import CLIConnectionError, ControlRequestError

from ..background import caller_loop
from ..process.cli_process import Memory
from ..process.settings import Settings, SettingValues, can_take
from ..session.core import SessionCore
from ..session.extensions import Extensions
from ..session.lease import LeaseTerm
from ..session.session import Session
from .launch import Launch, serves_once

logger = logging.getLogger(__name__)

# A killed or hanging process gives no answer. The check takes a millisecond, so it is skipped after a recent answer.
_SURE_SECONDS = 0.05
_PING_SECONDS = 2.0

# A zone's file is a name for the zone, too.
_ZONES = "/usr/share/zoneinfo/"

WorkerState: TypeAlias = Literal["idle", "busy", "resetting"]
"""Idle is clean, busy is leased, resetting is being emptied."""


class PooledSession(Session):
    """A session that can be leased. The additional methods are for the background loop only."""

    def __init__(self, core: SessionCore) -> None:
        super().__init__(core)
        self.side_effects = core.link.observer.side_effects
        """Side effects on the process that a rewind does not undo."""
        self.waited_at = core.link.observer.waited_at
        """Returns the time when the process last waited for a tool, a hook, a permission or us."""
        self.settings: Settings = core.settings

    async def apply(self, target_values: SettingValues) -> bool:
        """Set the settings that are not confirmed; return false if there are none. Raise if the process cannot."""
        return await self._core.apply(target_values)

    async def ping(self, seconds: float) -> None:
        """Raise if the process does not answer within `seconds`."""
        with suppress(ControlRequestError):  # an answer all the same
            await self._core.link.request("mcp_status", {}, seconds)

    async def drop_messages(self) -> None:
        """Drop the conversation from the first user message on."""
        await self._core.drop_messages()

    def can_take(self, target_values: SettingValues) -> bool:
        """Return true if the process has these settings, or can change to them."""
        return can_take(self._core, target_values)

    def lent_for(self, term: LeaseTerm) -> Session:
        """Return a session for the same process that is valid until `term` ends."""
        return Session(self._core, term)

    def begin_lease(self) -> None:
        """Forget the lease before: callers, turns, spending, and the process stderr output."""
        self.end_lease()  # a turn may have begun since
        self._core.extensions.callback_runner.begin(caller_loop.get())
        self._core.turns = 0
        self._core.ledger.forget()
        if self._process is not None:
            self._process.forget_stderr()

    def end_lease(self) -> None:
        """Forget the callers, and refuse later calls for them."""
        self._core.extensions.callback_runner.leave_all()

    async def vacate(self) -> None:
        """End a running turn, at most for `timeouts.close`, after which the session is dead."""
        if (sent := self._core.sent) is not None:
            self._core.leave(sent)
            await self._core.wait_for_end()


class Worker:
    """A process in a pool."""

    def __init__(self, launch: Launch, session: PooledSession) -> None:
        self.launch = launch
        self.session = session
        self.memory = Memory(0)
        """Memory as last measured."""
        self.uses: int = 0
        """Number of leases so far."""
        self.was_idle_for = 0.0
        """Seconds that it was idle before this lease."""
        self.state: WorkerState = "idle"
        self.since = time.monotonic()
        """Time when the state last changed."""
        self.started_at = self.since
        """Time when the process was ready, on the monotonic clock."""
        self.is_unsure = False
        """True if the program had other variables after its start: it serves a lease that waited, and no other."""
        self._zone = _time_zone(launch.options)
        self._day = datetime.now(self._zone).date()
        self._term = LeaseTerm()

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Start a process. Raises the errors of `Session.open()`."""
        return cls(launch, await cls.open(launch, launch.options))

    @staticmethod
    async def open(launch: Launch, options: ClaudeAgentOptions) -> PooledSession:
        """Open a session as in `launch`, with these options. Raises the errors of `Session.open()`."""
        prompt = options.system_prompt or ""  # None is an empty prompt, too
        if isinstance(prompt, str):  # unlike the Claude Code prompt, or a file
            # Without a snapshot of it, the process takes other system prompts.
            options = replace(options, system_prompt=SystemPromptCustom(type="custom", prompt=prompt, snapshot=False))
        return PooledSession(await SessionCore.open(Extensions(replace(launch, options=options))))

    def enter(self, state: WorkerState) -> None:
        """Change the state; only its pool may do so."""
        current_time = time.monotonic()
        if self.state == "idle":
            self.was_idle_for = current_time - self.since
        self.state, self.since = state, current_time

    @property
    def is_alive(self) -> bool:
        """True if the process can take a prompt."""
        return self.session.state == "idle" and self.session.is_running

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self.session.pid if self.session.is_running else None

    @property
    def is_of_another_day(self) -> bool:
        """True if the CLI would report a changed date to the model, unlike a fresh process."""
        return self._day != datetime.now(self._zone).date()

    @property
    def has_made_turns(self) -> bool:
        """True if there were turns since the reset; without a lease, Claude Code's own, as by a scheduled prompt."""
        return self.session.side_effects.answered or self.session.side_effects.has_conversation

    def unfit_while_idle(self) -> str | None:
        """Return the reason why a process that was clean can serve no lease any more, or None."""
        if not self.is_alive:
            return "dead"
        if self.is_of_another_day:
            return "date"
        return "changed" if self.has_made_turns else None

    def fits(self, launch: Launch) -> bool:
        """Return true if the process can serve `launch`, with other settings if necessary."""
        return self.launch.key == launch.key and self.session.can_take(launch.settings)

    def matches(self, launch: Launch) -> bool:
        """Return true if the process has the settings of `launch`, which it fits."""
        return not self.session.settings.missing(launch.settings)

    def preference(self, launch: Launch) -> tuple[bool, bool, float]:
        """Return a sort key: the best process needs no change, else has a prompt if `launch` has, and was used last.

        So a process that never had a system prompt, and serves all leases, is kept for leases without one.
        """
        is_like = (self.session.settings["system_prompt"] is None) == (launch.settings["system_prompt"] is None)
        return self.matches(launch), is_like, self.since

    async def prepare(self, launch: Launch) -> None:
        """Check that the process answers, and apply the settings of `launch`."""
        await self.ping()
        await self.session.apply(self._wanted(launch))
        if self.has_made_turns:
            raise CLIConnectionError(reason="Claude Code has begun a turn of its own")
        self.session.side_effects.clear()

    def _wanted(self, launch: Launch) -> SettingValues:
        return {**self.session.settings.at_start(), **launch.settings}

    async def ping(self) -> None:
        """Raise if the process does not answer, unless it did a moment ago."""
        if self.was_idle_for > _SURE_SECONDS:
            await self.session.ping(_PING_SECONDS)

    def lend(self) -> Session:
        """Return the session for this lease."""
        self.uses += 1
        self._term = LeaseTerm()
        return self.session.lent_for(self._term)

    def keep(self) -> Session:
        """Return the session itself: its calls then fail with the process error, not with the end of the lease."""
        self.uses += 1
        return self.session

    def take_back(self) -> None:
        """End the lease: the session for it becomes invalid."""
        self._term.finish()
        self.session.end_lease()

    @property
    def is_untouched(self) -> bool:
        """True if the lease left nothing to undo."""
        side_effects = self.session.side_effects
        return (
            self.session.state == "idle"
            and not (self.has_made_turns or side_effects.called_tools or side_effects.others)
            and not self.session.settings.missing(self._wanted(self.launch))
            and not self._term.calls
        )

    def unfit(self) -> str | None:
        """Return the reason why a reset cannot equal a fresh process, or None if it can."""
        side_effects = self.session.side_effects
        if self.session.state == "dead":
            return "dead"
        if self.is_of_another_day:
            return "date"
        if self.is_untouched:
            return None
        if serves_once(self.launch.options):
            return "fresh"
        if side_effects.others or not self.session.can_take(self._wanted(self.launch)):
            return "changed"
        # Without built-in tools and attachments, a tool call leaves only messages, which a rewind drops. Built-in tools
        # keep a working folder, tasks and more; attachments include a count of tokens, which continues.
        options = self.launch.options
        forgets_tools = options.tools == [] and options.env.get("CLAUDE_CODE_DISABLE_ATTACHMENTS") == "1"
        # A form of an MCP server does not name the call for which the server asks.
        forgets_tools &= self.launch.questions is None
        return "tools" if side_effects.called_tools and not forgets_tools else None

    async def reset(self) -> None:
        """Return to an empty conversation, and restore the settings; raise if that fails."""
        if self._term.calls:
            await asyncio.wait(self._term.calls)
        await self.session.vacate()
        await self.session.reset()
        await self.session.apply(self._wanted(self.launch))
        if self.session.state != "idle":
            raise ControlRequestError(subtype="rewind_conversation", message=f"the session is {self.session.state}")
        self.session.side_effects.clear()

    async def close(self) -> None:
        """End the process."""
        self.take_back()
        await self.session.close()

    def __repr__(self) -> str:
        return f"<Worker uses={self.uses} {self.session!r}>"


def _time_zone(options: ClaudeAgentOptions) -> tzinfo | None:
    """Return the time zone by which a process knows the date; None is that of the system."""
    name = options.env.get("TZ", os.environ.get("TZ"))
    try:
        return None if name is None else ZoneInfo(name.removeprefix(":").removeprefix(_ZONES))
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC  # as in the CLI
