"""A pool of warm sessions: each lease gets an empty conversation in a running process.

This is the facade for all threads and loops; `pool/core.py` controls the processes on the background loop. A core, the
processes and their loop belong to one process of the operating system. So a forked child gets a new core, and the
parent's continues in the parent.
"""

import asyncio
import functools
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Never, Self, Unpack

from claude_agent_sdk import ClaudeAgentOptions

from ..background import at_exit, in_forked_child, on_background, run_on_background, tell_background
from ..hooks.hook import Hook
from ..identity import owned
from ..limits import PoolLimits, Timeouts, refuse_keywords
from ..mcp.servers import McpServer
from ..policy.policy import Policy
from ..policy.questions import Questions
from ..process.cli_path import check_paths
from ..session.sent_message import Content
from ..session.session import Session
from ..session.turn import Turn
from .core import Lease, PoolCore
from .launch import Launch, LeaseOverrides
from .stats import PoolStats

_owners: "weakref.WeakSet[PoolOwner]" = weakref.WeakSet()


class PoolOwner:
    """Holds the core of `face`, which any thread may use. The processes end when `face` is garbage-collected.

    So `make` must not refer to `face`.
    """

    def __init__(self, face: object, make: Callable[[], PoolCore]) -> None:
        self._make = make
        self.core = make()
        """The current core."""
        finalizer = weakref.finalize(face, lambda: tell_background(self.core.aclose))
        finalizer.atexit = False  # when Python ends, `_close_all` closes all cores together
        _owners.add(self)

    def renew(self) -> PoolCore:
        """Make a new core, and return the previous core, which the caller must close."""
        previous_core, self.core = self.core, self._make()
        return previous_core


class SessionPool:
    """Keeps Claude Code processes warm, and leases them with an empty conversation each time.

    A lease gets a process that was started with the same options and files; model, system prompt, permission mode and,
    if sealed, MCP servers and, without a subscription, the folder are set while it runs, where that is exact. After the
    lease the process is reset to an empty conversation, ahead of the next lease. Exactly: the next lease's requests
    equal a fresh process's, except session ids and, unless sealed, betas that the API has refused before. A process
    that cannot be reset is replaced, and `stats().recycled` counts it:

    - `"uses"`, `"memory"`: it had reached `max_uses` or `max_rss_mb`;
    - `"idle"`, `"evicted"`: it had no lease for `idle_seconds`, or other options needed its place;
    - `"tools"`: the model had called a built-in tool, or any tool if the options are not sealed or there are questions;
      the CLI then keeps more than the conversation;
    - `"changed"`: the lease had made changes that cannot be undone: MCP servers, permissions, settings, and any effect
      of a prompt that is not verbatim;
    - `"fresh"`: the options resume a conversation or have a token budget;
    - `"date"`: another day has begun in the time zone (`TZ`), which the CLI would report to the model;
    - `"reset"`, `"dead"`: the reset failed, or the process had ended, or refused the settings of its next lease.

    Usable from any thread and any asyncio loop. Processes start with the first lease, or with `async with`.

    Args:
        options: Default options for processes; `sealed_options()` if None.
        limits: Limits on the processes; `PoolLimits()` if None.
        policy: Permissions for tool calls. This and the following are given to `Session.open()`.
        hooks: Callbacks for events. Coroutine functions run on the loop of the turn's caller.
        mcp_servers: MCP servers by name. Each process has separate connections to them. A server's state outlives a
            lease; an in-process server runs on the background thread, and must not block it.
        require_mcp: If true, a server that does not start is an error.
        questions: The answers to questions to the user.
        timeouts: Limits on the sessions' waits.
    """

    def __init__(
        self,
        options: ClaudeAgentOptions | None = None,
        *,
        limits: PoolLimits | None = None,
        policy: Policy | None = None,
        hooks: Sequence[Hook[Any]] = (),
        mcp_servers: Mapping[str, McpServer] | None = None,
        require_mcp: bool = True,
        questions: Questions | None = None,
        timeouts: Timeouts | None = None,
        **keywords: Never,
    ) -> None:
        refuse_keywords("SessionPool()", keywords, "limits")
        self._limits = limits or PoolLimits()
        if options is not None:
            check_paths(options.cwd, options.cli_path)
        options, values = owned(
            (
                options,
                LeaseOverrides(
                    policy=policy,
                    hooks=tuple(hooks),
                    mcp_servers=mcp_servers,
                    questions=questions,
                    timeouts=timeouts or Timeouts(),
                ),
            )
        )

        def launch(lease_options: ClaudeAgentOptions | None, overrides: LeaseOverrides) -> Launch:
            return Launch.of(lease_options or options, values | overrides, require_mcp=require_mcp)

        self._launch = launch
        self._owner = PoolOwner(self, functools.partial(PoolCore, lambda: launch(None, {}), self._limits))

    def lease(
        self, options: ClaudeAgentOptions | None = None, **overrides: Unpack[LeaseOverrides]
    ) -> AbstractAsyncContextManager[Session]:
        """Lease a session with an empty conversation for the duration of an `async with` block.

        Waits while all processes are in use; leases are served in order of arrival, after those by tools that a process
        waits for. Even if the session is left in a turn or closed, the next lease gets a clean one; after the block it
        is invalid.

        Args:
            options: Options in place of the pool's.
            **overrides: Merged over the options, field by field.

        Raises:
            QueueTimeoutError: No process became free within `Timeouts.queue`.
            ClaudeCodeError: A process could not be started, as in `Session.open()`, or the pool is closed.
        """
        return self._lend(Lease(self._launch(options, overrides)))

    @asynccontextmanager
    async def _lend(self, lease: Lease) -> AsyncGenerator[Session]:
        core = self._owner.core
        try:
            yield await on_background(core.lend, lease)
        finally:
            # Not awaited, so that a cancelled caller does it as well.
            tell_background(core.release, lease)

    async def run(
        self,
        prompt: Content,
        *,
        options: ClaudeAgentOptions | None = None,
        verbatim: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109  # for the turn, and the error names it
        max_cost_usd: float | None = None,
        retries: int = 0,
        **overrides: Unpack[LeaseOverrides],
    ) -> Turn:
        """Run one turn in a new session, as `lease()` and `Session.run()` do. Raises their errors.

        Args:
            prompt: This and the following: as in `Session.run()`.
            verbatim: True to send the prompt unchanged.
            timeout: Maximum duration in seconds.
            max_cost_usd: Maximum cost.
            options: This and the overrides: as in `lease()`.
            retries: Number of retries, each in another process, if a process dies before its answer begins. The API may
                have been asked by then.
            **overrides: Merged over the options, field by field.
        """
        launch = self._launch(options, overrides)
        ask = functools.partial(
            Session.run, prompt=prompt, verbatim=verbatim, timeout=timeout, max_cost_usd=max_cost_usd
        )
        return await on_background(self._owner.core.run, launch, ask, retries)

    def run_sync(
        self,
        prompt: Content,
        *,
        options: ClaudeAgentOptions | None = None,
        verbatim: bool = True,
        timeout: float | None = None,
        max_cost_usd: float | None = None,
        retries: int = 0,
        **overrides: Unpack[LeaseOverrides],
    ) -> Turn:
        """Call `run()` from code without `await`: blocks the thread. Any number of threads may do so at once.

        Raises:
            RuntimeError: It was called from a hook, a policy or a tool, on the thread for which it would wait.
        """
        run = functools.partial(self.run, verbatim=verbatim, timeout=timeout, max_cost_usd=max_cost_usd)
        return run_on_background(run, prompt, options=options, retries=retries, **overrides)

    async def warm(
        self, count: int, options: ClaudeAgentOptions | None = None, **overrides: Unpack[LeaseOverrides]
    ) -> None:
        """Start processes, and return when there are `count` with these options, leased ones included.

        Raises:
            ValueError: The pool is smaller than that.
            ClaudeCodeError: A process could not be started, or the pool is closed.
        """
        if not 0 <= count <= self._limits.size:
            raise ValueError(f"{count} processes cannot be warm: the pool has room for {self._limits.size}")
        await on_background(self._owner.core.warm, self._launch(options, overrides), count)

    def stats(self) -> PoolStats:
        """Return the current figures. Takes no lock and asks no process, so any caller may use it at any time."""
        return self._owner.core.stats()

    async def close(self) -> None:
        """End all processes, leased ones too, and delete their folders, as fast as `Session.close()`. Idempotent.

        Leases that wait, and turns that run, fail.
        """
        await on_background(self._owner.core.aclose)

    def close_sync(self) -> None:
        """Call `close()` from code without `await`."""
        run_on_background(self._owner.core.aclose)

    async def __aenter__(self) -> Self:
        await on_background(self._owner.core.prewarm)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        run_on_background(self._owner.core.prewarm)
        return self

    def __exit__(self, *_: object) -> None:
        self.close_sync()

    def __repr__(self) -> str:
        return f"<SessionPool {self.stats().summary}>"


# More processes than processors, since an API call takes seconds in which the process only waits; each takes some 100
# MB. A program with a single query shall not keep the process for long.
@functools.cache
def _default_pool() -> SessionPool:
    return SessionPool(limits=PoolLimits(size=8, prewarm=0, idle_seconds=60))


async def query(
    prompt: Content,
    options: ClaudeAgentOptions | None = None,
    *,
    pool: SessionPool | None = None,
    timeouts: Timeouts | None = None,
) -> Turn:
    """Ask Claude Code once, in a new conversation, and return the turn.

    Args:
        prompt: A text, or content blocks as in the Messages API. It is data: no `@file` is read, no `/command` run.
        options: The SDK options; the pool's if None, or `sealed_options()`.
        pool: The pool to use. If None, a pool that all calls share: up to 8 processes, which start on demand, serve all
            calls with the same options, and end after a minute without a call, or with Python.
        timeouts: Limits on waits, in place of the pool's.

    Raises:
        TurnError: The turn failed; the error has the turn.
        ClaudeCodeError: A process could not be started, or ended.
    """
    overrides = LeaseOverrides() if timeouts is None else LeaseOverrides(timeouts=timeouts)
    return await (pool or _default_pool()).run(prompt, options=options, **overrides)


async def _close_all() -> None:
    # Before the sessions are closed: otherwise a pool would start others in their place.
    cores = [owner.core for owner in [*_owners] if not owner.core.is_closed]
    await asyncio.gather(*(core.aclose() for core in cores), return_exceptions=True)


def _renew_all() -> None:
    for owner in [*_owners]:
        if not owner.core.is_closed:
            owner.renew()


at_exit(_close_all)
in_forked_child(_renew_all)
