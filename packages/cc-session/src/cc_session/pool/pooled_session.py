"""A session that a pool leases again and again. Lives on the background loop; callers get a `Session` for a lease."""

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from claude_agent_sdk import ClaudeAgentOptions
from claude_agent_sdk.types import SystemPromptCustom

from cc_types import ControlRequestError

from ..background import caller_loop
from ..process.settings import Settings, SettingValues, can_take
from ..session.core import SessionCore
from ..session.extensions import Extensions, SessionSetup
from ..session.lease import LeaseTerm
from ..session.session import Session

# A killed or hanging process gives no answer. The check takes a millisecond, so it is skipped after a recent answer.
_SURE_SECONDS = 0.05
_PING_SECONDS = 2.0

# A zone's file is a name for the zone, too.
_ZONES = "/usr/share/zoneinfo/"


class StartDay:
    """The day on which a process was started, in its time zone."""

    def __init__(self, options: ClaudeAgentOptions) -> None:
        self._zone = _time_zone(options)
        self._day = datetime.now(self._zone).date()

    @property
    def is_over(self) -> bool:
        """True if the CLI would report a changed date to the model, unlike a fresh process."""
        return self._day != datetime.now(self._zone).date()


def _time_zone(options: ClaudeAgentOptions) -> tzinfo | None:
    """Return the time zone by which a process knows the date; None is that of the system."""
    name = options.env.get("TZ", os.environ.get("TZ"))
    try:
        return None if name is None else ZoneInfo(name.removeprefix(":").removeprefix(_ZONES))
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC  # as in the CLI


class PooledSession(Session):
    """A session that can be leased. The additional methods are for the background loop only."""

    def __init__(self, core: SessionCore) -> None:
        super().__init__(core)
        self.side_effects = core.link.observer.side_effects
        """Side effects on the process that a rewind does not undo."""
        self.waited_at = core.link.observer.waited_at
        """Returns the time when the process last waited for a tool, a hook, a permission or us."""
        self.settings: Settings = core.settings
        self.day: StartDay = StartDay(core.extensions.options)
        self._lease_term = LeaseTerm()

    @classmethod
    async def start(cls, setup: SessionSetup, options: ClaudeAgentOptions) -> Self:
        """Open a session as in `setup`, with these options. Raises the errors of `Session.open()`."""
        prompt = options.system_prompt or ""  # None is an empty prompt, too
        if isinstance(prompt, str):  # unlike the Claude Code prompt, or a file
            # Without a snapshot of it, the process takes other system prompts.
            options = replace(options, system_prompt=SystemPromptCustom(type="custom", prompt=prompt, snapshot=False))
        return cls(await SessionCore.open(Extensions(replace(setup, options=options))))

    @property
    def is_ready(self) -> bool:
        """True if the process can take a prompt."""
        return self.state == "idle" and self.is_running

    @property
    def is_waiting(self) -> bool:
        """True while the process waits for a tool, a hook, a permission or us."""
        return self._core.link.observer.is_waiting

    @property
    def has_calls(self) -> bool:
        """True if calls of the last lease are still running."""
        return bool(self._lease_term.calls)

    async def apply(self, target_values: SettingValues) -> bool:
        """Set the settings that are not confirmed; return false if there are none. Raise if the process cannot."""
        return await self._core.apply(target_values)

    async def ping(self) -> None:
        """Raise if the process does not answer, unless it did a moment ago."""
        if time.monotonic() - self._core.link.observer.heard_at > _SURE_SECONDS:
            with suppress(ControlRequestError):  # an answer all the same
                await self._core.link.request("mcp_status", {}, _PING_SECONDS)

    async def drop_messages(self) -> None:
        """Drop the conversation from the first user message on."""
        await self._core.drop_messages()

    def can_take(self, target_values: SettingValues) -> bool:
        """Return true if the process has these settings, or can change to them."""
        return can_take(self._core, target_values)

    def begin_lease(self) -> None:
        """Forget the lease before: callers, turns, spending, and the process stderr output."""
        self.end_lease()  # a turn may have begun since
        self._lease_term = LeaseTerm()
        self._core.extensions.callback_runner.begin(caller_loop.get())
        self._core.turns = 0
        self._core.ledger.forget()
        if self._process is not None:
            self._process.forget_stderr()

    def lend(self) -> Session:
        """Return a session for the same process that is valid until the lease ends."""
        return Session(self._core, self._lease_term)

    def end_lease(self) -> None:
        """Forget the callers, and refuse later calls of and for them."""
        self._lease_term.finish()
        self._core.extensions.callback_runner.leave_all()

    async def vacate(self) -> None:
        """Wait for the last lease's calls, which it has cancelled, and end a running turn.

        A turn may take `timeouts.close` to end; then the session is dead.
        """
        if self.has_calls:
            await asyncio.wait(self._lease_term.calls)
        if (sent := self._core.sent) is not None:
            self._core.leave(sent)
            await self._core.wait_for_end()
