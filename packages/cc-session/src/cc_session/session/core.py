"""Session logic on the background loop: send messages to the process and deliver the answers to their readers.

`Session` is the facade for all threads and loops. Do not await a `SessionCore` method from another loop, except through
a `LeaseTerm`.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Self
from uuid import uuid4

import anyio.to_thread
from claude_agent_sdk import Message, ResultMessage, Transport
from claude_agent_sdk.types import ConversationResetMessage

from cc_types import ClaudeCodeError, ControlRequestError, ControlTimeoutError, JsonValue

from ..background import caller_loop, time_limit
from ..errors import CLIConnectionError, SessionBusyError
from ..mcp.servers import McpServer
from ..process.link import Link
from ..process.settings import SettingValues, apply
from .continuation import Continuation
from .extensions import Extensions
from .sent_message import Content, CostLedger, History, SentMessage, TurnEvent, TurnState, assistant_line

# An interrupt in a turn's first milliseconds is lost; the CLI answer says so. Others take about 20 ms.
_QUEUED_SECONDS = 0.005
_INTERRUPT_AGAIN_SECONDS = 0.05


class SessionCore:
    """A conversation in a process."""

    def __init__(self, extensions: Extensions, transport: Transport | None) -> None:
        self.extensions = extensions
        self.timeouts = extensions.timeouts
        self.link = Link(
            extensions.options,
            extensions.timeouts,
            transport,
            client_options=extensions.client_options,
            on_message=self._take,
            on_end=self._end,
            dialogs=extensions.desk.dialogs,
        )
        self.settings = self.link.settings
        self.history = History(is_resumed=extensions.is_resumed)
        self._continuation = Continuation(extensions.options)
        self.ledger = CostLedger()
        self.turns = 0
        self.sent: SentMessage | None = None
        """Last message sent."""
        self._between: list[Message] = []
        """Messages since the last result, for the next turn reader."""
        self._draining: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, extensions: Extensions, transport: Transport | None = None) -> Self:
        """Start a process and wait until it is ready; leave nothing behind on failure."""
        core = cls(extensions, transport)
        await core.link.open(core._prepare)
        return core

    async def add_user(self, content: Content) -> str:
        """Append a user message and wait until the CLI has accepted it."""
        sent = SentMessage(content, asks=False)
        async with self._within_control_timeout("user message"):
            await self.begin(sent)
            # A frame written before the CLI result of no turns may overtake this one.
            await sent.has_ended.wait()
            self.link.check()
        return sent.uuid

    async def add_assistant(self, content: Content, model: str, input_tokens: int) -> str:
        """Append an assistant message, to which the CLI sends no answer."""
        uuid = str(uuid4())
        line = assistant_line(uuid, content, model=model, input_tokens=input_tokens)
        async with self._within_control_timeout("assistant message"):
            await self._vacate()
            self.history.add_assistant()
            await self.link.send(line)
        return uuid

    async def begin(self, sent: SentMessage, *, is_turn: bool = False) -> None:
        """Send a message when the CLI has finished the message before it."""
        await self._vacate()
        if sent.state is TurnState.OVER:  # abandoned by a caller that was cancelled before this point
            raise asyncio.CancelledError
        self._continuation.begin()
        sent.enter(TurnEvent.SEND)
        self.sent = sent
        self.extensions.callback_runner.begin(caller_loop.get())
        if sent.asks:
            self.link.set_phase("turn")
            self.turns += is_turn
            sent.messages.extend(self._between)
            self._between.clear()
        self.history.add_user(sent.uuid, is_command=sent.is_command)
        await self.link.send(sent.line)

    def leave(self, sent: SentMessage, error: Exception | None = None) -> None:
        """Interrupt a turn that its reader abandons, or whose reader gets `error`."""
        sent.enter(TurnEvent.LEAVE)
        if self.sent is sent:
            self.extensions.callback_runner.leave()
        sent.give_up(error or CLIConnectionError(reason="This turn was abandoned", advice="Begin another turn."))
        if self.sent is sent and not sent.has_ended.is_set() and self._draining is None:
            self._draining = asyncio.ensure_future(self._drain(sent))

    async def wait_for_end(self) -> None:
        """Wait until the abandoned turn has ended, at most for `timeouts.close`."""
        if self._draining is not None:
            await asyncio.wait({self._draining})

    async def rewind(self, target_uuid: str) -> dict[str, JsonValue]:
        """Make the CLI drop a message and all after it; return the answer."""
        sent = self.sent
        if sent is not None and not sent.asks:
            await self._vacate()
        answer: dict[str, JsonValue] = {}
        for last_seen in self.history.latest(target_uuid):
            fields: dict[str, JsonValue] = {
                "target_message_uuid": target_uuid,
                "last_seen_user_message_uuid": last_seen,
                "interrupt_if_running": True,
                "allow_assistant_target": True,
            }
            answer = await self.link.request("rewind_conversation", fields)
            if answer.get("reason") != "unseen_later_turn":  # also the reason if `last_seen` has left it
                break
        if answer.get("rewound") is True:
            self.history.rewind(target_uuid)
            self._between.clear()
            if sent is not None:
                sent.enter(TurnEvent.DROP)
        return answer

    async def reset(self) -> None:
        """Return to an exactly empty conversation."""
        self.link.check()
        self.history.check_can_be_emptied()
        await self.drop_messages()

    async def drop_messages(self) -> None:
        """Drop the conversation from the first user message on."""
        while uuids := self.history.uuids:
            answer = await self.rewind(uuids[0])
            if answer.get("rewound") is True:
                break
            if answer.get("reason") != "target_not_found":
                reason = str(answer.get("error") or answer.get("reason") or "no reason given")
                raise ControlRequestError(subtype="rewind_conversation", message=reason)
            del uuids[0]  # a hook has blocked it, so that it never entered the conversation
        self._between.clear()
        if self.sent is not None and self.sent.state is TurnState.OVER:
            self.sent = None  # it can have megabytes

    async def clear(self) -> None:
        """Return to an empty conversation with the CLI's `/clear` command, which leaves an echo."""
        await self.wait_for_end()
        sent = SentMessage("/clear", asks=True, verbatim=False)
        try:
            async with self._within_control_timeout("/clear"):
                await self.begin(sent)
                await sent.wait_until(sent.has_result)
        except BaseException:
            self.leave(sent)
            raise
        sent.take_all()
        self._between.clear()

    async def interrupt(self) -> None:
        """End the running turn, if any."""
        self.link.check()
        sent = self.sent
        if sent is None or not sent.asks or sent.state is TurnState.OVER:
            # The CLI may have begun a turn by itself.
            await self.link.request("interrupt", {})
            return
        async with self._within_control_timeout("interrupt"):
            await self.interrupt_turn(sent)
        self.link.check()

    async def interrupt_turn(self, sent: SentMessage) -> None:
        """End only this turn, and return when it has ended."""
        while not sent.has_ended.is_set():
            queued = (await self.link.request("interrupt", {})).get("still_queued")
            is_lost = isinstance(queued, list) and sent.uuid in queued
            with suppress(TimeoutError):
                async with asyncio.timeout(_QUEUED_SECONDS if is_lost else _INTERRUPT_AGAIN_SECONDS):
                    await sent.has_ended.wait()

    async def apply(self, target_values: SettingValues) -> bool:
        """Set the settings that are not confirmed; return false if there are none.

        Requests from callers that have left come first: their order with later requests would be uncertain.
        """
        await self.link.wait_for_answers()
        return await apply(self, target_values)

    async def request(self, subtype: str, fields: dict[str, JsonValue]) -> object:
        """Send a control request for a setting."""
        return await self.link.request(subtype, fields)

    async def serve(self, servers: Mapping[str, McpServer]) -> None:
        """Replace the MCP servers; in-process servers run on the background loop."""
        await self.extensions.serve(servers, loop=asyncio.get_running_loop())

    def has_other_texts(self, servers: Mapping[str, McpServer]) -> bool:
        """Return true if the CLI may keep other texts of these MCP servers' tools than they have now."""
        return self.extensions.has_other_texts(servers)

    async def move(self, folder: str) -> None:
        """Change the working folder, in an empty conversation.

        The CLI reports a move to the model, at the end of the conversation: so a message is added, and then dropped
        with the report. Measured on CLI 2.1.329: requests and permissions equal a fresh process's.
        """
        with self.settings.changing("cwd", folder):
            await self.add_user("The working folder changes.")
            trusted = await anyio.to_thread.run_sync(os.path.realpath, folder, abandon_on_cancel=True)
            fields: dict[str, JsonValue] = {"path": folder, "trust_accepted": True, "trusted_directory": trusted}
            answer = await self.link.request("set_cwd", fields)
            if answer.get("status") != "ok":
                message = answer.get("message", "no reason given")
                raise CLIConnectionError(reason=f"Claude Code did not change to the folder {folder}: {message}")
            await self.drop_messages()

    async def usage(self) -> dict[str, JsonValue]:
        """Return the spending that the CLI reports, also during a turn; empty if it reports none."""
        with suppress(ControlRequestError):
            # Without the field the CLI would read all transcripts from the last week.
            return await self.link.request("get_usage", {"skip_behaviors": True})
        return {}

    async def _prepare(self, link: Link) -> None:
        await self.extensions.unpack(link)
        if self.extensions.is_resumed:
            self.ledger.begin_at(await self.usage())

    def _take(self, message: Message) -> None:
        if isinstance(message, ResultMessage):
            self.ledger.take(message)
            self._continuation.end(message.session_id)
        elif isinstance(message, ConversationResetMessage):
            self.history.clear()
        sent = self.sent
        if sent is None or sent.has_ended.is_set():
            self._between.append(message)
            return
        sent.put(message, self.ledger.last)
        if sent.has_ended.is_set():
            self.link.set_phase(None)

    def _end(self, error: Exception) -> None:
        self._continuation.end()
        if self.sent is not None:
            self.sent.fail(error)

    async def _drain(self, sent: SentMessage) -> None:
        try:
            async with asyncio.timeout(self.timeouts.close):
                await self.interrupt_turn(sent)
        except (TimeoutError, ClaudeCodeError):
            self.link.discard("An abandoned turn did not end in time, so the process was discarded")
        finally:
            self._draining = None

    async def _vacate(self) -> None:
        """Wait until the CLI has finished the last message; raise if a caller still has to read the answer to it."""
        self.link.check()
        while (sent := self.sent) is not None:
            if sent.asks and sent.state in (TurnState.RUNNING, TurnState.ENDED):
                raise SessionBusyError()
            async with self._within_control_timeout("user message"):
                await sent.has_ended.wait()
            self.link.check()
            if self.sent is sent:
                self.sent = None

    def _within_control_timeout(self, subtype: str) -> AbstractAsyncContextManager[None]:
        seconds = self.timeouts.control
        return time_limit(seconds, partial(ControlTimeoutError, subtype=subtype, seconds=seconds))
