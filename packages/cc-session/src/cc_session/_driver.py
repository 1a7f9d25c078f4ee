"""The side of a session that lives on the background loop: it starts, feeds, reads and ends one process.

`Session` is its face for all threads and loops. Nothing in here may be awaited from another loop.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Self, cast

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Message, ResultMessage, Transport

from cc_types import ClaudeCodeError, CLIConnectionError, ControlRequestError, ControlTimeoutError, JsonValue

from ._exchange import Exchange
from ._folder import PrivateFolder
from ._ledger import Ledger
from ._process import CLIProcess, Phase
from ._traces import Traces
from ._translate import translated
from .background import at_exit
from .control import ControlTransport
from .errors import SessionBusyError
from .frames import Content, assistant_frame, frame_line, user_frame
from .timeouts import Timeouts
from .tool_calls import SuspendedCalls, with_tools

__all__ = ["Driver"]

logger = logging.getLogger(__name__)

# An interrupt in the first milliseconds of a turn is acknowledged and lost. One that is heeded takes about 20 ms.
_INTERRUPT_AGAIN_SECONDS = 0.1

# A process has gone after one close timeout, or a little more. A transport of the caller's may not bound its waits.
_CLOSE_FACTOR = 2


class Driver:
    """One process, what was sent to it last, and why it is gone."""

    def __init__(
        self, options: ClaudeAgentOptions, calls: SuspendedCalls, timeouts: Timeouts, transport: Transport | None
    ) -> None:
        self.calls = calls
        self._timeouts = timeouts
        self._folder: PrivateFolder | None = None
        if transport is None:
            self._folder = PrivateFolder()
            try:
                transport = CLIProcess(self._folder.options(options), self._folder.path, close_seconds=timeouts.close)
            except BaseException:
                self._folder.remove()
                raise
        self._transport = ControlTransport(transport, close_seconds=_CLOSE_FACTOR * timeouts.close)
        self._client = ClaudeSDKClient(options, transport=self._transport)
        self._connecting: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._between: list[Message] = []
        self._draining: asyncio.Task[None] | None = None
        self.ledger = Ledger()
        self.turns = 0
        """How many turns were begun."""
        self.exchange: Exchange | None = None
        """The last message that was sent, until its result was read."""
        self.first_user_uuid: str | None = None
        """The user message that the conversation begins with."""
        self.last_user_uuid: str | None = None
        self.end: Exception | None = None
        """Why nothing can be sent any more."""
        self.death: Exception | None = None
        """The same, if nobody has closed it."""

    @classmethod
    async def open(
        cls, options: ClaudeAgentOptions, calls: SuspendedCalls, timeouts: Timeouts, transport: Transport | None
    ) -> Self:
        """Start a process and wait until it is ready; leave nothing behind if it does not come to that."""
        driver = cls(with_tools(options, calls) if calls.tools else options, calls, timeouts, transport)
        _open_drivers.add(driver)
        try:
            await driver._connect()
        except asyncio.CancelledError:
            # Nothing can be waited for here: each await of a cancelled scope is cancelled again.
            driver._close_soon()
            raise
        except BaseException:
            await driver.close()
            raise
        return driver

    @property
    def process(self) -> CLIProcess | None:
        """The process, if it is one of this machine."""
        return self._transport.inner if isinstance(self._transport.inner, CLIProcess) else None

    @property
    def is_closing(self) -> bool:
        """Whether `close()` was called, perhaps by a cancelled `open()`."""
        return self._closing is not None

    @property
    def traces(self) -> Traces:
        """What was done to the process that a rewind does not take back."""
        return self._transport.traces

    async def add_user(self, content: Content) -> str:
        """Append a user message and wait until the CLI has taken it."""
        exchange = Exchange(user_frame(content, ask=False), asks=False)
        async with self._within_control_timeout("user message"):
            await self.begin(exchange)
            # A frame that is written before the CLI's result of no turns may overtake this one.
            await exchange.has_ended.wait()
            self._check()
        return exchange.uuid

    async def add_assistant(self, content: Content, model: str) -> str:
        """Append an assistant message; the CLI does not answer to it."""
        frame = assistant_frame(content, model=model)
        line = frame_line(frame)
        async with self._within_control_timeout("assistant message"):
            await self._vacate()
            await self._write(line)
        return cast(str, frame["uuid"])

    async def ask(self, content: Content) -> Exchange:
        """Append a user message that is to be answered."""
        exchange = Exchange(user_frame(content, ask=True), asks=True)
        await self.begin(exchange)
        return exchange

    async def next(self, exchange: Exchange) -> Message:
        """Return the next message of an exchange."""
        message = await exchange.next()
        if exchange.is_read and self.exchange is exchange:
            self.exchange = None
        return message

    async def begin(self, exchange: Exchange) -> None:
        """Send a message, when the one before it is done with."""
        await self._vacate()
        if exchange.is_left:  # before it was begun
            raise asyncio.CancelledError
        self.exchange = exchange
        if exchange.asks:
            self.turns += 1
            self._set_phase("turn")
            for message in self._between:
                exchange.put(message)
            self._between.clear()
        self.first_user_uuid = self.first_user_uuid or exchange.uuid
        self.last_user_uuid = exchange.uuid
        await self._write(exchange.line)

    def leave(self, exchange: Exchange) -> None:
        """Have a turn end that nobody reads any more: it is interrupted, or its process is discarded."""
        if exchange.is_left:
            return
        exchange.is_left = True
        if self.exchange is exchange and not exchange.has_ended.is_set():
            self._draining = asyncio.ensure_future(self._drain(exchange))

    async def drained(self) -> None:
        """Wait until the turn that was left has ended. Bounded by `timeouts.close`."""
        if self._draining is not None:
            await asyncio.wait({self._draining})

    async def rewind(self, target_uuid: str) -> bool:
        """Have the CLI drop a message and all after it."""
        exchange = self.exchange
        if exchange is not None and not exchange.asks:
            await self._vacate()
        answer = await self.control(
            "rewind_conversation",
            {
                "target_message_uuid": target_uuid,
                "last_seen_user_message_uuid": self.last_user_uuid,
                "interrupt_if_running": True,
                "allow_assistant_target": True,
            },
        )
        rewound = answer.get("rewound") is True
        if rewound and exchange is not None:
            exchange.is_dropped = True
        if rewound and target_uuid == self.first_user_uuid:
            self.first_user_uuid = None
        return rewound

    async def reset(self) -> None:
        """Go back to an empty conversation."""
        self._check()
        if self.first_user_uuid is not None and not await self.rewind(self.first_user_uuid):
            raise ControlRequestError(subtype="rewind_conversation", message="the conversation was not rewound")

    async def interrupt(self) -> None:
        """End the turn that runs, if any."""
        self._check()
        exchange = self.exchange
        if exchange is None or not exchange.asks:
            # None of ours; the CLI may have begun one by itself.
            await self.control("interrupt", {})
            return
        async with self._within_control_timeout("interrupt"):
            await self._interrupt(exchange)
        self._check()

    async def control(self, subtype: str, fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Send a control request and return its answer."""
        self._check()
        with translated():
            return await self._transport.request(subtype, seconds=self._timeouts.control, **fields)

    async def close(self) -> None:
        """End the process and delete its folder. The first call does it, all calls wait for it."""
        self._close_soon()
        if self._closing is not None:
            await asyncio.shield(self._closing)

    def disown(self) -> None:
        """In a forked child: nothing of this is ours."""
        self.end = CLIConnectionError(
            reason="The session belongs to the process that this one was forked from",
            advice="Open a session in this process.",
        )

    async def _connect(self) -> None:
        # In a task of its own: a cancelled `connect()` can leave the process running.
        self._connecting = asyncio.ensure_future(self._client.connect())
        self._connecting.add_done_callback(_ignore_outcome)
        try:
            with translated():
                async with asyncio.timeout(self._timeouts.connect):
                    await asyncio.shield(self._connecting)
        except TimeoutError as error:
            if isinstance(error, ClaudeCodeError):
                raise
            raise ControlTimeoutError(subtype="initialize", seconds=self._timeouts.connect) from error
        self._set_phase(None)
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        error: Exception
        try:
            with translated():
                async for message in self._client.receive_messages():
                    self._take(message)
            error = CLIConnectionError(reason="Claude Code's output has ended")
        except Exception as caught:
            error = caught
        self._die(error)

    def _die(self, error: Exception) -> None:
        if self.end is None:
            self.death = error
        self._finish(error)

    async def _interrupt(self, exchange: Exchange) -> None:
        while not exchange.has_ended.is_set():
            await self.control("interrupt", {})
            await _wait_for(exchange.has_ended, _INTERRUPT_AGAIN_SECONDS)

    async def _drain(self, exchange: Exchange) -> None:
        try:
            async with asyncio.timeout(self._timeouts.close):
                await self._interrupt(exchange)
        except (TimeoutError, ClaudeCodeError):
            self._die(CLIConnectionError(reason="A turn that was left did not end, so its process was discarded"))
            self._close_soon()

    def _take(self, message: Message) -> None:
        if isinstance(message, ResultMessage):
            self.ledger.take(message)
        exchange = self.exchange
        if exchange is None or exchange.has_ended.is_set():
            self._between.append(message)
            return
        exchange.put(message)
        if exchange.has_ended.is_set():
            if exchange.asks:
                exchange.spent = self.ledger.settle()
            self._set_phase(None)
            self.calls.cancel()

    def _finish(self, error: Exception) -> None:
        """Tell everybody who waits, or will wait, that nothing comes any more."""
        self.end = self.end or error
        self._transport.end(self.end)
        self.calls.end(self.end)
        if self.exchange is not None:
            self.exchange.fail(self.end)

    async def _vacate(self) -> None:
        """Wait until the CLI is done with the last message. If that one was asked, it is the caller's to read."""
        self._check()
        while (exchange := self.exchange) is not None:
            if exchange.asks and not exchange.is_over_with:
                raise SessionBusyError()
            async with self._within_control_timeout("user message"):
                await exchange.has_ended.wait()
            self._check()
            if self.exchange is exchange:
                self.exchange = None

    async def _write(self, line: str) -> None:
        self._check()
        # In a task of its own: whether a cancelled caller's message was sent must not be in doubt.
        writing = asyncio.ensure_future(self._transport.write(line))
        writing.add_done_callback(_ignore_outcome)
        try:
            with translated():
                await asyncio.shield(writing)
        except Exception as error:
            self._die(error)  # nobody knows how much of it has arrived
            raise

    def _check(self) -> None:
        if self.end is not None:
            raise self.end

    @asynccontextmanager
    async def _within_control_timeout(self, subtype: str) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(self._timeouts.control):
                yield
        except TimeoutError as error:
            if isinstance(error, ClaudeCodeError):
                raise
            raise ControlTimeoutError(subtype=subtype, seconds=self._timeouts.control) from error

    def _set_phase(self, phase: Phase) -> None:
        if self.process is not None:
            self.process.phase = phase

    def _close_soon(self) -> None:
        if self._closing is None and self in _open_drivers:
            self._closing = asyncio.ensure_future(self._shut_down())

    async def _shut_down(self) -> None:
        self._finish(CLIConnectionError(reason="The session is closed", advice="Open another one."))
        try:
            # The process first: all that waits for it ends with it.
            await self._transport.close()
            await self._stop_connecting()
            # MCP servers of the caller's may have tools that do not end.
            async with asyncio.timeout(self._timeouts.close):
                await self._client.disconnect()
        except Exception:
            logger.exception("A Claude Code session was not closed in order")
        finally:
            if self._reading is not None:
                self._reading.cancel()
            if self._folder is not None:
                self._folder.remove()
            _open_drivers.discard(self)

    async def _stop_connecting(self) -> None:
        """Wait for an end of connecting, which has failed by now; that of a caller's transport may have to be told."""
        if self._connecting is not None:
            _, pending = await asyncio.wait({self._connecting}, timeout=self._timeouts.close / 2)
            for task in pending:
                task.cancel()
                await asyncio.wait(pending, timeout=self._timeouts.close / 2)


def _ignore_outcome(task: asyncio.Task[None]) -> None:
    """Take note of a task's error, as asyncio wants it, where its caller may have been cancelled."""
    if not task.cancelled():
        task.exception()


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


_open_drivers: set[Driver] = set()


async def closing_ones_closed() -> None:
    """Wait until the sessions have gone that are being closed. Bounded as `close()` is."""
    await asyncio.gather(*(driver.close() for driver in [*_open_drivers] if driver.is_closing), return_exceptions=True)


async def _close_all() -> None:
    await asyncio.gather(*(driver.close() for driver in [*_open_drivers]), return_exceptions=True)


def _disown_all() -> None:
    for driver in _open_drivers:
        driver.disown()
    _open_drivers.clear()


at_exit(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
