"""The abilities of a CLI that requests need, probed when its first process has started.

Version numbers are not used. A probe asks the process, never the API; all of it takes some 15 ms. Without the first
ability no request works; without the others requests are slower. Measured on CLI 2.1.71 to 2.1.332.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import uuid4

from claude_agent_sdk import ClaudeAgentOptions

from cc_session import Session
from cc_session.internals import PooledSession
from cc_types import CLIConnectionError, ControlRequestError, ProcessExitedError

logger = logging.getLogger(__name__)

_PROBE = "CC_MESSAGES_PROBE"

# Options of the CLI JavaScript runtime: garbage is collected as if the machine had 64 MB, and less code is compiled.
# After 1,000 requests with ten messages a process has 182 MB of private memory instead of 245. Measured on CLI 2.1.329,
# Linux. They are not a stable interface of Bun, which does not start with an option that it does not have.
_MEMORY_ENV = {"BUN_JSC_forceRAMSize": "67108864", "BUN_JSC_useDFGJIT": "0"}


class Abilities:
    """A CLI's abilities; assumed until probed."""

    def __init__(self) -> None:
        self.can_rewind: bool = True
        """True if a message can be dropped from the conversation. Since CLI 2.1.191."""
        self.can_prove: bool = True
        """True if the log has call numbers."""
        self.has_proven = False
        """True if the log has had such a number."""
        self._is_probed = False
        self._can_save_memory = True

    async def open(
        self, start: Callable[[ClaudeAgentOptions], Awaitable[PooledSession]], options: ClaudeAgentOptions
    ) -> PooledSession:
        """Open a session whose process saves memory, unless the CLI cannot."""
        if self._can_save_memory:
            try:
                return await start(replace(options, env={**_MEMORY_ENV, **options.env}))
            except ProcessExitedError as error:
                if not any(name in error.stderr_tail for name in _MEMORY_ENV):
                    raise
                self._can_save_memory = False
                logger.warning("The CLI's runtime does not take %s, so its processes are larger", [*_MEMORY_ENV])
        return await start(options)

    async def probe(self, session: Session) -> None:
        """Probe `session`'s CLI, unless that was done."""
        # Without a lock, which a forked child would inherit: two processes that start together may both be probed.
        if self._is_probed:
            return
        await session.set_env({_PROBE: "1"})
        match await session.control("get_settings"):
            case {"effective": {"env": {**env}}} if env.get(_PROBE) == "1":
                pass
            case _:
                raise CLIConnectionError(
                    reason=f"{_name(session)} does not take a request's parameters while it runs",
                    advice="Use version 2.1.139 or newer (claude-agent-sdk 0.1.81).",
                )
        try:
            await session.rewind(str(uuid4()))
        except ControlRequestError:
            if self.can_rewind:  # else another process has warned
                self.can_rewind = False
                logger.warning(
                    "%s cannot drop a message from its conversation, so it is cleared after each request, which is "
                    "slower. Version 2.1.191 and newer can (claude-agent-sdk 0.2.110).",
                    _name(session),
                )
        self._is_probed = True

    def cannot_prove(self, session: Session) -> None:
        """Record that the log in `session`'s CLI has no numbers."""
        self.can_prove = False
        logger.warning(
            "%s does not log time limits for API calls, so nothing proves that a call has its request's parameters",
            _name(session),
        )


def _name(session: Session) -> str:
    version = session.info.get("claude_code_version")
    return f"Claude Code {version}" if version else "This version of Claude Code"
