"""A session: a Claude Code process, a conversation, one turn at a time.

It works on frames and events and does not interpret them: the caller chooses the messages. Every coroutine may be
awaited from any thread's asyncio loop.
"""

import asyncio
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from claude_agent_sdk import ClaudeAgentOptions, McpServerStatus, PermissionMode, Transport

from cc_types import JsonValue

from ..background import on_background, tell_background
from ..hooks.hook import Hook
from ..limits import Timeouts, checked_seconds
from ..mcp.servers import McpServer
from ..policy.policy import Policy
from ..policy.questions import Questions
from ..process.cli_process import CLIProcess
from ..process.sealed import sealed_options
from .core import SessionCore
from .extensions import Extensions, SessionSetup, check_mode
from .lease import LeaseTerm
from .sent_message import SESSION_STATES, Content, SentMessage, SessionState
from .stream import TurnStream
from .turn import Spent, Turn


class Session:
    """A CLI process and the conversation in it. Made by `Session.open()`, ended by `close()` or `async with`.

    It also ends when it is garbage-collected.

    `state` is `"idle"`; or `"busy"` from a message that asks until the result was read or the message rewound; or
    `"dirty"` while an abandoned turn is being ended, for which the next message waits; or `"dead"` when the process has
    ended or is being closed. Only one coroutine at a time may send messages; `interrupt()`, `rewind()`, `close()` and
    control requests may come from others meanwhile.

    Methods that need the process raise `ClaudeCodeError` if it has ended (`ProcessExitedError`) or sent an unreadable
    message, after which the session is dead; and if the CLI does not answer in time (`ControlTimeoutError`) or refuses
    (`ControlRequestError`). Methods that send a message raise `SessionBusyError` while a turn runs.
    """

    has_spans = True
    """True if its turns have spans."""

    def __init__(self, core: SessionCore, term: LeaseTerm | None = None) -> None:
        """Use `Session.open()`."""
        self._core = core
        self._term = term or LeaseTerm(is_lease=False)
        self._switched_off: dict[str, McpServer] = {}

    @classmethod
    async def open(
        cls,
        options: ClaudeAgentOptions | None = None,
        *,
        policy: Policy | None = None,
        hooks: Sequence[Hook[Any]] = (),
        mcp_servers: Mapping[str, McpServer] | None = None,
        require_mcp: bool = True,
        questions: Questions | None = None,
        timeouts: Timeouts | None = None,
        transport: Transport | None = None,
    ) -> Self:
        """Start a process and wait until it is ready.

        Args:
            options: The SDK options; `sealed_options()` if None. Possible secrets go to the process in private files,
                because every user of the machine can read a command line. Without a `cwd` it runs in an empty private
                folder.
            policy: Permissions for tool calls, in every permission mode.
            hooks: Callbacks for events, made by `hook()` and `command_hook()`.
            mcp_servers: MCP servers by name, in addition to the servers in the options; `set_mcp_servers()` replaces
                them. With sealed options their tools may be called unless there is a policy.
            require_mcp: If true, a server that does not start is an error. Otherwise the session lacks the tools.
            questions: The answers to questions to the user. Without it they are refused, and Claude has no tool to ask,
                unless the policy's `ask` or `can_use_tool` answers.
            timeouts: Limits on waits.
            transport: Connection to a CLI that is not a process on this machine; the transport applies `options`.

        Raises:
            CLINotFoundError: There is no CLI at the path, or anywhere.
            CLIConnectionError: The process could not be started.
            ProcessExitedError: It ended before it was ready; the error has the end of stderr.
            ControlTimeoutError: It was not ready within `timeouts.connect` seconds.
            McpServerFailedError: An MCP server was not ready within `timeouts.mcp` seconds, or has failed.
            HooksDisabledError: There are hooks or a policy, and the CLI would not run them.
            ValueError: The options conflict with hooks or a policy, such as the extra argument `bare`; or an argument
                is invalid.
        """
        setup = SessionSetup(
            options=options or sealed_options(),
            policy=policy,
            hooks=hooks,
            mcp_servers=mcp_servers,
            require_mcp=require_mcp,
            questions=questions,
            timeouts=timeouts or Timeouts(),
        )
        return await on_background(cls._open, Extensions(setup), transport)

    @classmethod
    async def _open(cls, extensions: Extensions, transport: Transport | None) -> Self:
        core, term = await SessionCore.open(extensions, transport), LeaseTerm(is_lease=False)
        # Here, not in the caller's task: a cancelled `open()` may lose its result. A turn's stream has the term, too.
        weakref.finalize(term, tell_background, core.link.shut_down).atexit = False
        return cls(core, term)

    @property
    def state(self) -> SessionState:
        """Current state."""
        if self._term.is_over or self._core.link.end is not None:
            return "dead"
        sent = self._core.sent
        return SESSION_STATES[sent.state] if sent is not None and sent.asks else "idle"

    @property
    def is_running(self) -> bool:
        """True if the process exists, according to the system: `state` shows the end milliseconds later."""
        process = self._process
        return self.state != "dead" and (process is None or not process.has_ended)

    @property
    def death(self) -> Exception | None:
        """Reason why the process ended by itself, or was discarded because it did not answer."""
        return None if self._term.is_over else self._core.link.death

    @property
    def pid(self) -> int | None:
        """Process id, or None if the process is not ours or was closed."""
        process = self._process
        return process.pid if process is not None else None

    @property
    def last_user_uuid(self) -> str | None:
        """Uuid of the last user message sent to the process, perhaps in an earlier lease."""
        return None if self._term.is_over else self._core.history.last_sent

    @property
    def turns(self) -> int:
        """Number of turns begun since the session was opened or leased."""
        return 0 if self._term.is_over else self._core.turns

    @property
    def cost_usd(self) -> float:
        """Cost in US dollars since the session was opened or leased, by the CLI estimate. Grows when turns end."""
        return 0.0 if self._term.is_over else self._core.ledger.cost_usd

    @property
    def last_spent(self) -> Spent:
        """Cost of the last finished turn alone (the CLI result reports session totals)."""
        return Spent() if self._term.is_over else self._core.ledger.last

    @property
    def info(self) -> Mapping[str, JsonValue]:
        """The CLI report at the start: commands, models, account, version and more."""
        return self._core.link.info

    @property
    def stderr_tail(self) -> str:
        """Last lines of the process stderr; empty if the process is not ours."""
        process = self._process
        return process.stderr_tail if process is not None else ""

    @property
    def _process(self) -> CLIProcess | None:
        return None if self._term.is_over else self._core.link.process

    async def run(
        self,
        prompt: Content,
        *,
        verbatim: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109  # for the turn, which continues by itself, not for the wait
        max_cost_usd: float | None = None,
    ) -> Turn:
        """Send a prompt, wait until the turn has ended, and return the turn.

        A cancelled caller does not wait for that: the turn is interrupted, and the next message waits for the end.
        Messages until then stay in the conversation; `rewind()` drops them.

        Args:
            prompt: A text, or content blocks as in the Messages API.
            verbatim: True to send it unchanged. If false, `@file` inserts a file and `/command` runs a command, as far
                as the session options permit.
            timeout: Maximum duration in seconds; `timeouts.turn` if None.
            max_cost_usd: Maximum cost in US dollars; the options' `max_budget_usd` if None. An API call that exceeds it
                is the turn's last.

        Raises:
            TurnError: The turn failed; the error has the turn. The session can be used afterwards.
            TurnTimeoutError: The turn took too long, or was silent for too long, and is being ended.
            ValueError: The timeout or the cost is an invalid number.
        """
        return await self.stream(prompt, verbatim=verbatim, timeout=timeout, max_cost_usd=max_cost_usd).to_end()

    def stream(
        self, prompt: Content, *, verbatim: bool = True, timeout: float | None = None, max_cost_usd: float | None = None
    ) -> TurnStream:
        """Like `run()`, but yields the messages as they arrive: `async with session.stream(…) as messages`.

        Raises:
            ValueError: The timeout or the cost is an invalid number.
        """
        sent = SentMessage(prompt, asks=True, verbatim=verbatim)
        return TurnStream(self._core, self._term, sent, timeout, max_cost_usd, has_span=self.has_spans)

    async def reset(self, *, tools_changed: bool = False) -> Literal["rewound", "cleared"]:
        """Return to an empty conversation; returns the method.

        A rewind ends a running turn and leaves nothing of the conversation: in a sealed process, the next request
        equals a new process's. With `tools_changed` the CLI's `/clear` command clears the conversation instead, when no
        turn runs. Then the CLI reads the list of tools again, and leaves an echo with some 400 characters before the
        next message.

        Raises:
            ControlRequestError: The conversation cannot be rewound to nothing, because it does not begin with a user
                message from this session; or the CLI refused.
        """
        if tools_changed:
            await on_background(self._term.call, self._core.clear)
            return "cleared"
        await on_background(self._term.call, self._core.reset)
        return "rewound"

    async def add_user(self, content: Content) -> str:
        """Append a user message without asking for an answer; returns the uuid.

        The CLI has `timeouts.control` seconds to accept it. It joins user messages that follow each other, with a line
        break after a text.
        """
        return await on_background(self._term.call, self._core.add_user, content)

    async def add_assistant(self, content: Content, *, model: str, input_tokens: int = 0) -> str:
        """Append an earlier assistant message; returns the uuid.

        The CLI takes `input_tokens` as the conversation length up to there; at 0 it estimates.
        """
        return await on_background(self._term.call, self._core.add_assistant, content, model, input_tokens)

    async def set_env(self, env: Mapping[str, str]) -> None:
        """Change environment variables that the CLI reads for each request, such as `CLAUDE_CODE_EXTRA_BODY`."""
        await self.control("apply_flag_settings", settings={"env": dict(env)})

    async def rewind(self, target_uuid: str) -> bool:
        """Drop the message `target_uuid` and all after it, ending a turn that runs.

        The target is a user message without tool results, or the first part of an assistant message that follows tool
        results. Returns true if the CLI did it; if not, nothing changed except that the turn may have ended.
        """
        return (await on_background(self._term.call, self._core.rewind, target_uuid)).get("rewound") is True

    async def interrupt(self) -> None:
        """End the running turn, if any, within `timeouts.control` seconds. The result still has to be read."""
        await on_background(self._term.call, self._core.interrupt)

    async def set_model(self, model: str | None) -> None:
        """Change the model for later turns; None is the CLI default model.

        In a conversation that has begun, the CLI reports the change to the model before the next message. It accepts
        unknown names, and then the API refuses.
        """
        await self.control("set_model", model=model)

    async def set_permission_mode(self, mode: PermissionMode) -> None:
        """Change the permission mode, from now on.

        Raises:
            ValueError: There is no such mode.
            ControlRequestError: The CLI refused, for example `"bypassPermissions"` in a process started without it.
        """
        check_mode(mode)
        await self.control("set_permission_mode", mode=mode)

    async def control(
        self,
        subtype: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109  # the error names it
        **fields: JsonValue,
    ) -> dict[str, JsonValue]:
        """Send a control request and return the CLI answer.

        Args:
            subtype: Kind of request.
            timeout: Seconds to wait for the answer; `timeouts.control` if None.
            **fields: The request's other fields.

        Raises:
            ValueError: The timeout is an invalid number.
        """
        if timeout is not None:
            checked_seconds(timeout, "control")
        return await on_background(self._term.call, self._core.link.request, subtype, fields, timeout)

    async def wait_mcp(
        self,
        names: Sequence[str] | None = None,
        *,
        timeout: float = 30.0,  # noqa: ASYNC109  # a later server is an error only if `require` is true
        require: bool = True,
    ) -> list[McpServerStatus]:
        """Wait until MCP servers are ready; a turn that begins earlier waits for them.

        Args:
            names: Server names; None for all servers.
            timeout: Seconds to wait.
            require: If true, a server that is not connected by then, or has failed, is an error.

        Raises:
            McpServerFailedError: A server is not connected; the error has the server message.
            ValueError: The session has no server with that name.
        """
        seconds = checked_seconds(timeout, "wait_mcp")
        return await on_background(
            self._term.call, self._core.extensions.mcp.wait, names, seconds=seconds, require=require
        )

    async def mcp_status(self) -> list[McpServerStatus]:
        """Return all MCP servers with state and tools. A killed server is connected until the next call to it."""
        return await on_background(self._term.call, self._core.extensions.mcp.status)

    async def set_mcp_servers(self, servers: Mapping[str, McpServer], *, require: bool = True) -> list[McpServerStatus]:
        """Replace the MCP servers given to `open()` or set here before, and wait until the new servers are ready.

        The next request lists only the new servers' tools. Until they are ready, or have failed, the CLI answers no
        other control request.

        Raises:
            McpServerFailedError: A server is not ready within `timeouts.mcp` seconds, or has failed, and `require` is
                set. The servers are replaced all the same.
            ValueError: A name or a value is invalid.
            TypeError: An object is not a server.
        """
        loop, serve, off = asyncio.get_running_loop(), self._core.extensions.serve, self._switched_off
        return await on_background(self._term.call, serve, servers, require=require, loop=loop, switched_off=off)

    async def reconnect_mcp(self, name: str) -> None:
        """Reconnect an MCP server.

        Raises:
            McpServerFailedError: It failed, or no server has that name.
        """
        await on_background(self._term.call, self._core.extensions.mcp.reconnect, name)

    async def toggle_mcp(self, name: str, enabled: bool) -> None:
        """Switch an MCP server given to `open()` or `set_mcp_servers()` on or off, in this session alone.

        The next request lists its tools, or does not. `mcp_status()` leaves it out while it is off.

        Raises:
            McpServerFailedError: It could not be connected, or is in the options or in Claude Code's configuration.
            ValueError: The session has no server with that name.
        """
        loop, switch, off = asyncio.get_running_loop(), self._core.extensions.switch, self._switched_off
        await on_background(self._term.call, switch, name, is_on=enabled, loop=loop, switched_off=off)

    async def close(self) -> None:
        """End the process and delete the private folder, within a few times `timeouts.close`. Idempotent."""
        if not self._term.is_over:
            await on_background(self._term.call, self._core.link.shut_down)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Session pid={self.pid} {self.state} turns={self.turns} cost_usd={self.cost_usd:g}>"
