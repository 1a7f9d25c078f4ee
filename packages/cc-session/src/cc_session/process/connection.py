"""One CLI connection from start to end: connect, read, write, send control requests, close.

It lives on the background loop and does not interpret messages: they go to `on_message`, and its end to `on_end`.
"""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import cast

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message, Transport

from cc_types import ClaudeCodeError, ControlTimeoutError, JsonValue

from ..background import at_exit
from ..errors import CLIConnectionError, MessageParseError
from ..timeouts import Timeouts
from .api_host import fail_without_network
from .cli_file import check_paths
from .cli_process import CLIProcess, Phase
from .control import ControlTransport
from .private_folder import PrivateFolder
from .process_tree import MARK
from .sdk_errors import translated

__all__ = ["CLIConnection", "closing_ones_closed"]

logger = logging.getLogger(__name__)

# A process has ended after one close timeout, or a little more. A caller's transport may wait without a limit.
_CLOSE_FACTOR = 2


class CLIConnection:
    """One process, or the peer of a caller's transport, and why it ended."""

    def __init__(
        self,
        options: ClaudeAgentOptions,
        timeouts: Timeouts,
        transport: Transport | None,
        *,
        client_options: ClaudeAgentOptions,
        on_message: Callable[[Message], None],
        on_end: Callable[[Exception], None],
    ) -> None:
        self.timeouts = timeouts
        self._env = options.env
        self._on_message = on_message
        self._on_end = on_end
        self._folder: PrivateFolder | None = None
        if transport is None:
            check_paths(options.cwd, options.cli_path)
            try:
                self._folder = PrivateFolder()
                private = self._folder.options(options)
                transport = CLIProcess(private, self._folder.path, close_seconds=timeouts.close)
            except BaseException as error:
                if self._folder is not None:
                    self._folder.remove()
                if isinstance(error, OSError):
                    reason = f"Claude Code gets no private folder: {error}"
                    advice = "Make room in the folder for temporary files, or raise the limit of open files."
                    raise CLIConnectionError(reason=reason, advice=advice) from error
                raise
        self.transport = ControlTransport(transport, options, close_seconds=_CLOSE_FACTOR * timeouts.close)
        self.client = ClaudeSDKClient(client_options, transport=self.transport)
        self._connecting: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self.closing: asyncio.Task[None] | None = None
        """Set by `close()`, perhaps for a cancelled `open()`."""
        self._phase: Phase = "connect"
        self._asked = 0
        self.info: dict[str, JsonValue] = {}
        """Server info from the CLI, sent when it was ready."""
        self.end: Exception | None = None
        """Error for all further sending."""
        self.death: Exception | None = None
        """The same, unless it was closed."""
        _open_connections.add(self)

    @property
    def process(self) -> CLIProcess | None:
        """The process, if it runs on this machine."""
        return self.transport.inner if isinstance(self.transport.inner, CLIProcess) else None

    @property
    def mark(self) -> dict[str, str]:
        """Environment variable that makes another process end with this one."""
        return {} if self._folder is None else {MARK: str(self._folder.path)}

    async def open(self, unpack: Callable[["CLIConnection"], Awaitable[None]]) -> None:
        """Start the CLI, wait until it is ready, and `unpack`; clean up if any of that fails."""
        try:
            await self._connect()
            await unpack(self)
        except asyncio.CancelledError:
            # Awaiting is impossible here: each await in a cancelled scope is cancelled again.
            self._close_soon()
            raise
        except BaseException:
            await self.close()
            raise

    async def request(
        self, subtype: str, fields: dict[str, JsonValue], seconds: float | None = None
    ) -> dict[str, JsonValue]:
        """Send a control request and return its answer. The default timeout is `timeouts.control`."""
        self.check()
        self._asking(1)
        try:
            with translated():
                seconds = self.timeouts.control if seconds is None else seconds
                return await self.transport.request(subtype, seconds=seconds, **fields)
        finally:
            self._asking(-1)

    async def write(self, line: str) -> None:
        """Write a line; failure ends the connection."""
        self.check()
        # In a separate task: it must be certain whether a cancelled caller's message was sent.
        writing = asyncio.ensure_future(self.transport.write(line))
        writing.add_done_callback(_ignore_outcome)
        try:
            with translated():
                await asyncio.shield(writing)
        except Exception as error:
            self._die(error)  # an unknown part of it has arrived
            raise

    def check(self) -> None:
        """Raise the error in `end`, if there is one."""
        if self.end is not None:
            raise self.end

    def set_phase(self, phase: Phase) -> None:
        """Set the activity of the process, for its errors, and for the way to close it."""
        if self._phase == "turn" and self.process is not None:
            self.process.last_words.forget()  # they were not fatal
        self._phase = phase
        self._asking(0)

    async def close(self) -> None:
        """End the process and delete its folder. Idempotent: each call waits for the end."""
        self._close_soon()
        if self.closing is not None:
            await asyncio.shield(self.closing)

    def discard(self, reason: str) -> None:
        """End a process that cannot be used any more, without waiting."""
        self._die(CLIConnectionError(reason=reason, advice="Open another session."))

    def disown(self) -> None:
        """Refuse all use in a forked child."""
        self.end = CLIConnectionError(
            reason="The session belongs to the process that this one was forked from",
            advice="Open a session in this process.",
        )

    def _asking(self, more: int) -> None:
        self._asked += more
        if self.process is not None:
            self.process.phase = self._phase or ("control" if self._asked else None)

    async def _connect(self) -> None:
        # In a separate task: a cancelled `connect()` can leave the process running.
        connecting = self._connecting = asyncio.ensure_future(self.client.connect())
        connecting.add_done_callback(_ignore_outcome)
        # The transport does not tell the SDK why it has ended; the SDK would wait for an answer.
        ended = asyncio.ensure_future(self.transport.ended())
        failures: list[asyncio.Task[None]] = [ended]
        if self.process is not None:
            failures.append(asyncio.ensure_future(fail_without_network(self._env)))
        try:
            with translated():
                async with asyncio.timeout(self.timeouts.connect):
                    await asyncio.wait({connecting, *failures}, return_when=asyncio.FIRST_COMPLETED)
                    if not connecting.done():
                        connecting.cancel()
                        await next(failure for failure in failures if failure.done())
                    await connecting
        except TimeoutError as error:
            if isinstance(error, ClaudeCodeError):
                raise
            raise ControlTimeoutError(subtype="initialize", seconds=self.timeouts.connect) from error
        finally:
            for failure in failures:
                failure.add_done_callback(_ignore_outcome)
                failure.cancel()
        self.info = cast("dict[str, JsonValue]", await self.client.get_server_info() or {})
        self.set_phase(None)
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        try:
            with translated():
                async for message in self._messages():
                    self._on_message(message)
                await self.transport.ended()
        except Exception as error:
            self._die(error)

    async def _messages(self) -> AsyncGenerator[Message]:
        try:
            async for message in self.client.receive_messages():
                yield message
        except (AttributeError, TypeError) as error:
            # Of the SDK's parser, which reports only missing fields.
            raise MessageParseError(reason=f"A field has another type than expected: {error}") from error

    def _die(self, error: Exception) -> None:
        if self.end is None:
            self.death = error
            # In one line, without the process output that the error may hold.
            reason = getattr(error, "reason", type(error).__name__)
            logger.warning("Process %s: %s", self.process and self.process.pid, reason)
        self._finish(error)
        # `close()` may never be called, and child processes may still run.
        self._close_soon()

    def _finish(self, error: Exception) -> None:
        """Make all current and future waits fail: no more messages come."""
        self.end = self.end or error
        self.transport.end(self.end)
        self._on_end(self.end)

    def _close_soon(self) -> None:
        if self.closing is None and self in _open_connections:
            self.closing = asyncio.ensure_future(self._shut_down())

    async def _shut_down(self) -> None:
        self._finish(CLIConnectionError(reason="The session is closed", advice="Open another one."))
        try:
            # The process first: all waits for it end with it.
            await self.transport.close()
            await self._stop_connecting()
            # The caller's MCP servers may have tools that do not end.
            async with asyncio.timeout(self.timeouts.close):
                await self.client.disconnect()
        except Exception:
            logger.exception("A Claude Code session was not closed in order")
        finally:
            if self._reading is not None:
                self._reading.cancel()
            if self._folder is not None:
                self._folder.remove()
            _open_connections.discard(self)

    async def _stop_connecting(self) -> None:
        """Wait for `_connecting`, which has failed by now; with a caller's transport it may need a cancel."""
        if self._connecting is not None:
            _, pending = await asyncio.wait({self._connecting}, timeout=self.timeouts.close / 2)
            for task in pending:
                task.cancel()
                await asyncio.wait(pending, timeout=self.timeouts.close / 2)


def _ignore_outcome(task: asyncio.Task[None]) -> None:
    """Retrieve a task's error, as asyncio requires, where its caller may have been cancelled."""
    if not task.cancelled():
        task.exception()


_open_connections: set[CLIConnection] = set()


async def closing_ones_closed() -> None:
    """Wait for all connections that are being closed. Bounded like `close()`."""
    closing = [connection for connection in _open_connections if connection.closing is not None]
    await asyncio.gather(*(connection.close() for connection in closing), return_exceptions=True)


async def _close_all() -> None:
    await asyncio.gather(*(connection.close() for connection in [*_open_connections]), return_exceptions=True)


def _disown_all() -> None:
    for connection in _open_connections:
        connection.disown()
    _open_connections.clear()


at_exit(_close_all)
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_disown_all)
