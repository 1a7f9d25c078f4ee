"""How a process serves one conversation after another: what a lease needs and leaves, the reset, and a replacement."""

from cc_types import CLIConnectionError, ControlRequestError

from ..process.settings import SettingValues
from .launch import Launch, serves_once
from .pooled_session import PooledSession
from .worker import Worker


async def start_worker(launch: Launch) -> Worker:
    """Start a process for sessions. Raises the errors of `Session.open()`."""
    session = await PooledSession.start(launch, launch.options)
    return Worker(launch, session, SessionReuse(launch, session))


class SessionReuse:
    """An adapter for a worker whose leases are sessions."""

    def __init__(self, launch: Launch, session: PooledSession) -> None:
        self._launch, self._session = launch, session

    def matches(self, launch: Launch) -> bool:
        """Return true if no setting has to change for `launch`."""
        return not self._session.settings.missing(launch.settings)

    def unfit_while_idle(self, since: float) -> str | None:
        """Return what has happened to a clean process: its end, another day, or a turn of Claude Code's own."""
        if not self._session.is_ready:
            return "dead"
        if self._session.day.is_over:
            return "date"
        return "changed" if self._has_made_turns else None

    async def prepare(self, launch: Launch) -> None:
        """Check that the process answers, and apply the settings of `launch`."""
        self._launch = launch
        await self._session.ping()
        await self._session.apply(self._wanted)
        if self._has_made_turns:
            raise CLIConnectionError(reason="Claude Code has begun a turn of its own")
        self._session.side_effects.clear()

    @property
    def is_untouched(self) -> bool:
        """True if there were no turns, changes and calls."""
        session, side_effects = self._session, self._session.side_effects
        return (
            session.state == "idle"
            and not (self._has_made_turns or side_effects.called_tools or side_effects.others)
            and not session.settings.missing(self._wanted)
            and not session.has_calls
        )

    def unfit(self) -> str | None:
        """Return the first reason of those that `SessionPool` lists, or None."""
        side_effects = self._session.side_effects
        if self._session.state == "dead":
            return "dead"
        if self._session.day.is_over:
            return "date"
        if self.is_untouched:
            return None
        if serves_once(self._launch.options):
            return "fresh"
        if side_effects.others or not self._session.can_take(self._wanted):
            return "changed"
        # Without built-in tools and attachments, a tool call leaves only messages, which a rewind drops. Built-in tools
        # keep a working folder, tasks and more; attachments include a count of tokens, which continues.
        options = self._launch.options
        forgets_tools = options.tools == [] and options.env.get("CLAUDE_CODE_DISABLE_ATTACHMENTS") == "1"
        # A form of an MCP server does not name the call for which the server asks.
        forgets_tools &= self._launch.questions is None
        return "tools" if side_effects.called_tools and not forgets_tools else None

    async def reset(self) -> None:
        """Return to an empty conversation, and restore the settings; raise if that fails."""
        await self._session.vacate()
        await self._session.reset()
        await self._session.apply(self._wanted)
        if self._session.state != "idle":
            message = f"the session is {self._session.state}"
            raise ControlRequestError(subtype="rewind_conversation", message=message)
        self._session.side_effects.clear()

    async def close(self) -> None:
        """End the process."""
        await self._session.close()

    @property
    def _wanted(self) -> SettingValues:
        """Settings that a process has between leases for this launch."""
        return {**self._session.settings.at_start(), **self._launch.settings}

    @property
    def _has_made_turns(self) -> bool:
        """True if there were turns since the reset; without a lease, Claude Code's own, as by a scheduled prompt."""
        return self._session.side_effects.answered or self._session.side_effects.has_conversation
