"""One prompt, one answer, in a process that is warm from the prompt before."""

from claude_agent_sdk import ClaudeAgentOptions

from ..process.frames import Content
from ..session.turn import Turn
from ..timeouts import Timeouts
from .launch import LeaseOverrides
from .pool import SessionPool

__all__ = ["query"]

# An API call takes seconds in which its process only waits, so there are more of them than processors; each takes some
# 100 MB. Who asks once and goes on with other things shall not keep it for long.
_default_pool = SessionPool(size=8, prewarm=0, idle_seconds=60)


async def query(
    prompt: Content,
    options: ClaudeAgentOptions | None = None,
    *,
    pool: SessionPool | None = None,
    timeouts: Timeouts | None = None,
) -> Turn:
    """Ask Claude Code once, in a conversation of its own, and return what came of it.

    Args:
        prompt: A text, or content blocks of the Messages API. It is data: no `@file` is read, no `/command` run.
        options: The SDK's options; `sealed_options()` if None, or those of `pool`.
        pool: Whose process to use. If None, one that all calls share: up to 8 processes, which start when they are
            needed, serve all calls with the same options, and end after a minute without one, or with Python.
        timeouts: How long to wait for what, instead of the pool's.

    Raises:
        TurnError: The turn failed; the error has all that came of it.
        ClaudeCodeError: A process could not be started, or ended.
    """
    overrides = LeaseOverrides() if timeouts is None else LeaseOverrides(timeouts=timeouts)
    return await (pool or _default_pool).run(prompt, options=options, **overrides)
