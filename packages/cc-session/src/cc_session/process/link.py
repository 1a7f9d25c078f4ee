"""The link to a CLI from start to end: connect, write, read, match answers with control requests, close.

It lives on the background loop and does not interpret messages: they go to `on_message`, and the end to `on_end`.

The CLI accepts more control requests than the SDK offers: the link sends them, with special ids, and hides the answers
from the SDK. A request is always sent whole, and its answer is recorded also if the caller was cancelled: the CLI has
the new settings, or will have them. The CLI carries out control requests in order (measured on CLI 2.1.81 to 2.1.332).
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NoReturn, cast
from uuid import uuid4

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookCallback, Message, Transport
from typing_extensions import override

from cc_types import ControlRequestError, ControlTimeoutError, JsonValue

from ..background import at_exit, in_forked_child, time_limit
from ..errors import CLIConnectionError
from ..limits import Timeouts
from ..sdk import add_hook
from .cli_process import CLIProcess, Phase
from .network import fail_without_network
from .observer import Observer
from .sdk_errors import translate, translated
from .sdk_messages import QUESTIONS, SDKMessages, parsed_messages
from .settings import Settings

logger = logging.getLogger(__name__)

# A pipe breaks a moment before its reader learns why.
_REASON_SECONDS = 1.0

# A process ends within the close timeout, or a little later. A caller's transport may have no limit.
_CLOSE_FACTOR = 2

# Prefixes of lines, which are not parsed: prompts can have megabytes.
_CONTROL_REQUEST, _CONTROL_RESPONSE = '{"type": "control_request"', '{"type": "control_response"'


class Link(Transport):
    """A process, or the peer of a caller's transport, and why it ended. It is the transport of its SDK client."""

    def __init__(
        self,
        options: ClaudeAgentOptions,
        timeouts: Timeouts,
        transport: Transport | None,
        *,
        client_options: ClaudeAgentOptions,
        on_message: Callable[[Message], None],
        on_end: Callable[[Exception], None],
        dialogs: Sequence[str] = (),
    ) -> None:
        """Start nothing yet. `dialogs` are the kinds of dialogs that the CLI may send."""
        self.timeouts = timeouts
        self._env = options.env
        self._dialogs = dialogs
        self._on_message, self._on_end = on_message, on_end
        self._inner = transport or CLIProcess(options, close_seconds=timeouts.close)
        self.process = self._inner if isinstance(self._inner, CLIProcess) else None
        """The process, if it runs on this machine."""
        if self.process is not None:
            client_options.env = self.process.env  # the SDK looks there for transcripts to store
        self.settings = Settings(options)
        self.observer = Observer()
        self.client = ClaudeSDKClient(client_options, transport=self)
        self._sdk_messages = SDKMessages()
        self._answers: dict[str, asyncio.Future[dict[str, JsonValue]]] = {}
        """The answer that comes, for each control request."""
        self._writing: set[asyncio.Task[None]] = set()
        self._connecting: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._output_end: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
        """Fails when the output has ended; messages may still be on their way to `on_message`."""
        self.closing: asyncio.Task[None] | None = None
        """Set by `shut_down()`, perhaps for a cancelled `open()`."""
        self._phase: Phase = "connect"
        self.info: dict[str, JsonValue] = {}
        self.end: Exception | None = None
        """Error for all further messages."""
        self.death: Exception | None = None
        """The same, unless the link was shut down."""
        _open_links.add(self)

    async def open(self, unpack: Callable[["Link"], Awaitable[None]]) -> None:
        """Start the CLI, wait until it is ready, and `unpack`; clean up on failure."""
        try:
            await self._open()
            await unpack(self)
        except asyncio.CancelledError:
            # Not awaited: each await in a cancelled scope is cancelled again.
            self._shut_down_soon()
            raise
        except BaseException:
            await self.shut_down()
            raise

    async def request(
        self, subtype: str, fields: dict[str, JsonValue], seconds: float | None = None
    ) -> dict[str, JsonValue]:
        """Send a control request and return the answer; raise a refusal, a timeout, or the process end.

        The default timeout is `timeouts.control`.
        """
        self.check()
        if self._output_end.done():
            self._output_end.result()
        loop, seconds = asyncio.get_running_loop(), self.timeouts.control if seconds is None else seconds
        request_id, request = f"cc_{uuid4().hex}", {"subtype": subtype, **fields}
        line = json.dumps({"type": "control_request", "request_id": request_id, "request": request}) + "\n"
        answer = self._answers[request_id] = loop.create_future()
        timer = loop.call_later(seconds, _fail, answer, ControlTimeoutError(subtype=subtype, seconds=seconds))
        answer.add_done_callback(partial(self._answered, request_id, timer))
        self.settings.sent(request_id, request)
        self.observer.requested(request, can_be_undone=self.settings.can_undo(request))
        self._update_phase()
        self.observer.sent(line)
        writing = asyncio.ensure_future(self._inner.write(line))
        self._writing.add(writing)
        writing.add_done_callback(partial(self._written, answer))
        await asyncio.wait({answer})  # a cancel leaves the answer alone
        response = answer.result()
        if response.get("subtype") == "error":
            raise ControlRequestError(subtype=subtype, message=str(response.get("error", "no reason given")))
        payload = response.get("response")
        return cast("dict[str, JsonValue]", payload) if isinstance(payload, dict) else {}

    async def wait_for_answers(self) -> None:
        """Wait for the answers to all requests, also from callers that have left, as long as each request may take."""
        while self._answers:
            await asyncio.wait(self._answers.values())

    def answer_questions(self, answer: HookCallback) -> None:
        """Answer the CLI questions to the user, which the SDK gets as calls of this hook."""
        add_hook(self.client, QUESTIONS, answer)

    async def send(self, line: str) -> None:
        """Write a message; failure ends the link."""
        self.check()
        # In a separate task: it must be certain whether a cancelled caller's message was sent.
        writing = asyncio.ensure_future(self.write(line))
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
        self._update_phase()

    async def shut_down(self) -> None:
        """End the process and delete the folder. Idempotent: each call waits for the end."""
        self._shut_down_soon()
        if self.closing is not None:
            await asyncio.shield(self.closing)

    def discard(self, reason: str) -> None:
        """End a process that cannot be used any more, without waiting."""
        self._die(CLIConnectionError(reason=reason, advice="Open another session."))

    @override
    async def connect(self) -> None:
        await self._inner.connect()

    @override
    async def write(self, data: str) -> None:
        self.observer.sent(data)
        if self._dialogs and data.startswith(_CONTROL_REQUEST):
            initialize, kinds = '"subtype": "initialize"', json.dumps([*self._dialogs])
            data = data.replace(initialize, f'{initialize}, "supportedDialogKinds": {kinds}', 1)
        try:
            await self._inner.write(data)
        except Exception:
            await asyncio.wait({self._output_end}, timeout=_REASON_SECONDS)
            if not self._output_end.done():
                raise
            # An answer is not needed any more. The SDK sends it in a separate task, whose error nobody reads.
            if not data.startswith(_CONTROL_RESPONSE):
                self._output_end.result()

    @override
    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        try:
            async for message in self._inner.read_messages():
                self.observer.received(message)
                if message.get("type") == "control_response" and self._takes_answer(message.get("response")):
                    continue
                for sdk_message in self._sdk_messages.read(message):
                    yield sdk_message
        except Exception as error:
            # Not for the SDK: it logs an error with the whole text, and replaces it by an earlier turn's error.
            self._end_output(error)
        self._end_output(ConnectionError("Claude Code's output has ended"))

    @override
    async def end_input(self) -> None:
        await self._inner.end_input()

    @override
    def is_ready(self) -> bool:
        return self._inner.is_ready()

    @override
    async def close(self) -> None:
        """Do nothing: the SDK calls this, and the process ends in `shut_down()`."""

    def _takes_answer(self, response: Any) -> bool:
        """Return true if the response to a control request is not for the SDK, which fails at malformed ones."""
        match response:
            case {"request_id": str(request_id), **rest}:
                answer = self._answers.get(request_id)
                if answer is not None and not answer.done():
                    answer.set_result(rest)
                return request_id.startswith("cc_")  # also a late answer
            case _:
                return True

    def _answered(
        self, request_id: str, timer: asyncio.TimerHandle, answer: "asyncio.Future[dict[str, JsonValue]]"
    ) -> None:
        timer.cancel()
        del self._answers[request_id]
        is_success = answer.exception() is None and answer.result().get("subtype") != "error"
        self.settings.answered(request_id, is_success=is_success)
        self._update_phase()

    def _written(self, answer: "asyncio.Future[dict[str, JsonValue]]", writing: asyncio.Task[None]) -> None:
        self._writing.discard(writing)
        if not writing.cancelled() and isinstance(error := writing.exception(), Exception):
            # The end of the output, which says why, fails the answer earlier.
            asyncio.get_running_loop().call_later(_REASON_SECONDS, _fail, answer, translate(error))

    def _update_phase(self) -> None:
        if self.process is not None:
            self.process.phase = self._phase or ("control" if self._answers else None)

    async def _open(self) -> None:
        # In a separate task: a cancelled `connect()` can leave the process running.
        connecting = self._connecting = asyncio.ensure_future(self.client.connect())
        connecting.add_done_callback(ignore_outcome)
        failures: list[asyncio.Task[None]] = []
        if self.process is not None:
            failures.append(asyncio.ensure_future(fail_without_network(self._env)))
        seconds = self.timeouts.connect
        try:
            async with time_limit(seconds, partial(ControlTimeoutError, subtype="initialize", seconds=seconds)):
                with translated():
                    # Nobody tells the SDK why the output has ended; it would wait for an answer.
                    waits = (connecting, self._output_end, *failures)
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                    if not connecting.done():
                        connecting.cancel()
                    await next(wait for wait in waits if wait.done())
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
                async for message in parsed_messages(self.client, self.observer):
                    self._on_message(message)
                await asyncio.shield(self._output_end)
        except Exception as error:
            self._die(error)

    def _die(self, error: Exception) -> None:
        if self.end is None:
            self.death = error
            # Without the process output that the error may hold.
            reason = getattr(error, "reason", type(error).__name__)
            logger.warning("Process %s: %s", self.process and self.process.pid, reason)
        self._finish(error)
        # `shut_down()` may never be called, and child processes may still run.
        self._shut_down_soon()

    def _finish(self, error: Exception) -> None:
        """Make all current and future waits fail: no more messages come."""
        self.end = self.end or error
        self._end_output(self.end)
        self._on_end(self.end)

    def _end_output(self, error: Exception) -> None:
        """Make all current and future control requests fail."""
        if not self._output_end.done():
            self._output_end.set_exception(translate(error))
            ignore_outcome(self._output_end)
            for answer in self._answers.values():
                _fail(answer, translate(error))

    def _shut_down_soon(self) -> None:
        if self.closing is None and self in _open_links:
            self.closing = asyncio.ensure_future(self._shut_down())

    async def _shut_down(self) -> None:
        self._finish(CLIConnectionError(reason="The session is closed", advice="Open another session."))
        try:
            # The process first: then all other waits end.
            closing = asyncio.ensure_future(self._inner.close())
            seconds = _CLOSE_FACTOR * self.timeouts.close
            if not await _finished(closing, seconds):
                logger.error("%r was not closed within %g seconds and is left alone", self._inner, seconds)
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
            for task in (self._reading, *self._writing):
                if task is not None:
                    task.cancel()
            _open_links.discard(self)


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def ignore_outcome(future: "asyncio.Future[Any]") -> None:
    """Retrieve an error, as asyncio requires, where the caller may have been cancelled."""
    if not future.cancelled():
        future.exception()


async def _finished(task: asyncio.Task[None], seconds: float) -> bool:
    """Return true if a task ends in time; cancel it if not."""
    task.add_done_callback(ignore_outcome)
    # Not `asyncio.timeout()`, which waits for a task that ignores a cancel.
    await asyncio.wait({task}, timeout=seconds)
    return task.done() or not task.cancel()


_open_links: set[Link] = set()


async def wait_until_closed() -> None:
    """Wait for all links that are being shut down, as long as `shut_down()` may take."""
    closing = [link.shut_down() for link in _open_links if link.closing is not None]
    await asyncio.gather(*closing, return_exceptions=True)


async def _shut_down_all() -> None:
    await asyncio.gather(*[link.shut_down() for link in _open_links], return_exceptions=True)


def _disown_all() -> None:
    for link in _open_links:
        link.end = CLIConnectionError(
            reason="The session belongs to the process that this process was forked from",
            advice="Open a session in this process.",
        )
    _open_links.clear()


at_exit(_shut_down_all)
in_forked_child(_disown_all)
