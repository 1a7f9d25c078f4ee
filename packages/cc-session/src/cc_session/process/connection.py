"""A CLI connection from start to end: connect, read, write, send control requests, close.

It lives on the background loop and does not interpret messages: they go to `on_message`, and the end to `on_end`. The
SDK errors become ours.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import cast

import claude_agent_sdk as sdk
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookCallback, Message, ResultMessage, Transport

from cc_types import ClaudeCodeError, ControlTimeoutError, JsonValue

from ..background import at_exit, in_forked_child, time_limit
from ..errors import CLIConnectionError, CLIJSONDecodeError, CLINotFoundError, MessageParseError, ProcessExitedError
from ..limits import Timeouts
from ..sdk import MessageParseError as SDKMessageParseError
from ..sdk import add_hook
from .cli_process import CLIProcess, Phase
from .network import fail_without_network
from .transport import QUESTIONS, ControlTransport, ignore_outcome

logger = logging.getLogger(__name__)

# Start of the SDK message that names the requested path.
_NOT_FOUND_AT = "Claude Code not found at: "

# Start of the SDK message about an unanswered request, and the SDK timeout. Our timeouts are usually shorter.
_TIMEOUT = "Control request timeout: "
_TIMEOUT_SECONDS = 60.0

# A process ends within the close timeout, or a little later. A caller's transport may have no limit.
_CLOSE_FACTOR = 2


@dataclass
class LoginResult(ResultMessage):
    """A result of a login with `/login`, with the field that the SDK parser drops."""

    credential_expires_at: str | None = None
    """Time when the login ends, in ISO 8601."""


class CLIConnection:
    """A process, or the peer of a caller's transport, and why it ended."""

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
        self._on_message, self._on_end = on_message, on_end
        transport = transport or CLIProcess(options, close_seconds=timeouts.close)
        self.process = transport if isinstance(transport, CLIProcess) else None
        """The process, if it runs on this machine."""
        if self.process is not None:
            client_options.env = self.process.env  # the SDK looks there for transcripts to store
        self.transport = ControlTransport(transport, options)
        self.client = ClaudeSDKClient(client_options, transport=self.transport)
        self._connecting: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self.closing: asyncio.Task[None] | None = None
        """Set by `close()`, perhaps for a cancelled `open()`."""
        self._phase: Phase = "connect"
        self._requests = 0
        self.info: dict[str, JsonValue] = {}
        self.end: Exception | None = None
        """Error for all further messages."""
        self.death: Exception | None = None
        """The same, unless the connection was closed."""
        _open_connections.add(self)

    async def open(self, unpack: Callable[["CLIConnection"], Awaitable[None]]) -> None:
        """Start the CLI, wait until it is ready, and `unpack`; clean up on failure."""
        try:
            await self._connect()
            await unpack(self)
        except asyncio.CancelledError:
            # Not awaited: each await in a cancelled scope is cancelled again.
            self._close_soon()
            raise
        except BaseException:
            await self.close()
            raise

    async def request(
        self, subtype: str, fields: dict[str, JsonValue], seconds: float | None = None
    ) -> dict[str, JsonValue]:
        """Send a control request and return the answer. The default timeout is `timeouts.control`."""
        self.check()
        self._count_requests(1)
        try:
            with translated():
                seconds = self.timeouts.control if seconds is None else seconds
                return await self.transport.request(subtype, seconds=seconds, **fields)
        finally:
            self._count_requests(-1)

    def answer_questions(self, answer: HookCallback) -> None:
        """Answer the CLI questions to the user, which `transport` turns into calls of this hook."""
        add_hook(self.client, QUESTIONS, answer)

    async def write(self, line: str) -> None:
        """Write a line; failure ends the connection."""
        self.check()
        # In a separate task: it must be certain whether a cancelled caller's message was sent.
        writing = asyncio.ensure_future(self.transport.write(line))
        writing.add_done_callback(ignore_outcome)
        try:
            with translated():
                await asyncio.shield(writing)
        except Exception as error:
            self._die(error)  # nobody knows how much of the line has arrived
            raise

    def check(self) -> None:
        """Raise the error in `end`, if there is one."""
        if self.end is not None:
            raise self.end

    def set_phase(self, phase: Phase) -> None:
        """Set the process activity, which error messages name and on which the way to end it depends."""
        if self._phase == "turn" and self.process is not None:
            self.process.last_words.forget()  # lines that were not fatal
        self._phase = phase
        self._count_requests(0)

    async def close(self) -> None:
        """End the process and delete the folder. Idempotent: each call waits for the end."""
        self._close_soon()
        if self.closing is not None:
            await asyncio.shield(self.closing)

    def discard(self, reason: str) -> None:
        """End a process that cannot be used any more, without waiting."""
        self._die(CLIConnectionError(reason=reason, advice="Open another session."))

    def _count_requests(self, difference: int) -> None:
        self._requests += difference
        if self.process is not None:
            self.process.phase = self._phase or ("control" if self._requests else None)

    async def _connect(self) -> None:
        # In a separate task: a cancelled `connect()` can leave the process running.
        connecting = self._connecting = asyncio.ensure_future(self.client.connect())
        connecting.add_done_callback(ignore_outcome)
        # The transport does not tell the SDK why it has ended; the SDK would wait for an answer.
        failures: list[asyncio.Task[None]] = [asyncio.ensure_future(self.transport.ended())]
        if self.process is not None:
            failures.append(asyncio.ensure_future(fail_without_network(self._env)))
        seconds = self.timeouts.connect
        try:
            async with time_limit(seconds, partial(ControlTimeoutError, subtype="initialize", seconds=seconds)):
                with translated():
                    await asyncio.wait({connecting, *failures}, return_when=asyncio.FIRST_COMPLETED)
                    if not connecting.done():
                        connecting.cancel()
                    await next(task for task in (connecting, *failures) if task.done())
        finally:
            for failure in failures:
                failure.add_done_callback(ignore_outcome)
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
                end = self.transport.observer.login_expires_at
                if isinstance(message, ResultMessage) and end is not None:
                    message = LoginResult(**vars(message))
                    message.credential_expires_at = end
                yield message
        except (AttributeError, TypeError) as error:
            # The SDK parser reports missing fields, but not wrong types.
            raise MessageParseError(reason=f"A field has another type than expected: {error}") from error

    def _die(self, error: Exception) -> None:
        if self.end is None:
            self.death = error
            # Without the process output that the error may hold.
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
        self._finish(CLIConnectionError(reason="The session is closed", advice="Open another session."))
        try:
            # The process first: then all other waits end.
            closing = asyncio.ensure_future(self.transport.inner.close())
            seconds = _CLOSE_FACTOR * self.timeouts.close
            if not await _finished(closing, seconds):
                logger.error("%r was not closed within %g seconds and is left alone", self.transport.inner, seconds)
            elif not closing.cancelled() and (error := closing.exception()) is not None:
                logger.error("Closing the transport of a Claude Code session failed", exc_info=error)
            # It has failed by now; with a caller's transport it may need a cancel.
            if self._connecting is not None and not await _finished(self._connecting, self.timeouts.close / 2):
                await asyncio.wait({self._connecting}, timeout=self.timeouts.close / 2)
            # The caller's MCP servers may have tools that do not end.
            async with asyncio.timeout(self.timeouts.close):
                await self.client.disconnect()
        except Exception:
            logger.exception("A Claude Code session was not closed in order")
        finally:
            if self._reading is not None:
                self._reading.cancel()
            _open_connections.discard(self)


async def _finished(task: asyncio.Task[None], seconds: float) -> bool:
    """Return true if a task ends in time; cancel it if not."""
    task.add_done_callback(ignore_outcome)
    # Not `asyncio.timeout()`, which waits for a task that ignores a cancel.
    await asyncio.wait({task}, timeout=seconds)
    return task.done() or not task.cancel()


@contextmanager
def translated() -> Generator[None]:
    """Raise the SDK errors as `ClaudeCodeError`; others pass."""
    try:
        yield
    except Exception as error:
        if isinstance(error, ClaudeCodeError) or (ours := _ours(error)) is None:
            raise
        raise ours from error


def _ours(error: Exception) -> ClaudeCodeError | None:
    match error:
        case sdk.CLINotFoundError():
            path = str(error).removeprefix(_NOT_FOUND_AT)
            return CLINotFoundError(path=path if path != str(error) else None)
        case sdk.ProcessError():
            return ProcessExitedError(exit_code=error.exit_code, stderr_tail=error.stderr or "")
        case sdk.CLIJSONDecodeError():
            return CLIJSONDecodeError(line=error.line, reason=str(error.original_error))
        case SDKMessageParseError():
            return MessageParseError(reason=str(error), data=getattr(error, "data", None))
        case _ if isinstance(error.__cause__, ClaudeCodeError):
            return error.__cause__
        # The SDK raises a bare `Exception` when the CLI did not answer, or refused, a control request from the SDK.
        case _ if type(error) is Exception and str(error).startswith(_TIMEOUT):
            return ControlTimeoutError(subtype=str(error).removeprefix(_TIMEOUT), seconds=_TIMEOUT_SECONDS)
        case _ if isinstance(error, (sdk.ClaudeSDKError, ConnectionError)) or type(error) is Exception:
            return CLIConnectionError(reason=_reason(error))
        case _:
            return None


def _reason(error: Exception) -> str:
    """Return the SDK sentence. At the end it quotes the cause, which may have no text."""
    sentence = str(error).strip().rstrip(". ")
    if sentence and not sentence.endswith(":"):
        return sentence
    cause = type(error.__cause__ or error).__name__
    return f"{sentence or 'Claude Code cannot be used:'} {cause}, without a reason"


_open_connections: set[CLIConnection] = set()


async def wait_until_closed() -> None:
    """Wait for all connections that are being closed, as long as `close()` may take."""
    closing = [connection.close() for connection in _open_connections if connection.closing is not None]
    await asyncio.gather(*closing, return_exceptions=True)


async def _close_all() -> None:
    await asyncio.gather(*[connection.close() for connection in _open_connections], return_exceptions=True)


def _disown_all() -> None:
    for connection in _open_connections:
        connection.end = CLIConnectionError(
            reason="The session belongs to the process that this process was forked from",
            advice="Open a session in this process.",
        )
    _open_connections.clear()


at_exit(_close_all)
in_forked_child(_disown_all)
