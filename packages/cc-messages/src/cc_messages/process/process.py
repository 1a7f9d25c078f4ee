"""A process of the pool that answers requests of the Messages API, one at a time, without state between two.

The request is in the extra body, whose fields replace the CLI's own, `messages` and `system` included. So the CLI gets
a prompt that the API never receives, makes one API call, and drops the prompt after the answer. Any process answers any
request of its launch key.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from typing import Self, cast

from claude_agent_sdk import Message, RateLimitEvent, ResultMessage
from typing_extensions import override

from cc_session import Content, TurnError, TurnStream
from cc_session.internals import Launch, PooledSession, Worker, api_address, variable
from cc_types import ClaudeCodeError, CLIConnectionError, RateLimits

from ..api.cost import with_cost
from ..api.failure import as_logged, with_limits
from ..api.message import Event
from ..api.request import MessagesRequest
from .api_log import LOG_ENV, APILog
from .call_number import NUMBER_VARIABLE, CallNumbers
from .launch import NO_COMMANDS, RequestLaunch
from .single_call import MOST_TOKENS, STEP_TOKENS, allow_prompt
from .turn_reader import Reading

__all__ = ["RequestProcess"]

logger = logging.getLogger(__name__)

# The CLI's prompt in place of the conversation.
_PROMPT = "."

# The log comes with the first event. It is late on an overloaded machine only, and without it there is no proof.
_PROOF_SECONDS = 5.0

# The time limit at shutdown for the last messages of an answered turn.
_LAST_WORDS_SECONDS = 1.0


class RequestProcess(Worker):
    """A process for requests of callers that own the loop.

    Args:
        launch: Its launch.
        session: Its session.
        log: Reads its stderr.
    """

    # True if the conversation is in the CLI's history, beside the CLI's own text such as the date.
    _has_history = False

    def __init__(self, launch: RequestLaunch, session: PooledSession, log: APILog) -> None:
        super().__init__(launch, session)
        self.log = log
        """The log of the process's last API call."""
        self._allowance, self._abilities = launch.allowance, launch.abilities
        self._allowed = 0
        self._numbers = CallNumbers({**os.environ, **launch.options.env})
        self._was_left = False
        self._is_mixed = False
        self._request: MessagesRequest | None = None
        self.on_limits: Callable[[RateLimits], object] | None = None
        """Called with the limits of an API response."""
        self._has_log = LOG_ENV.items() <= launch.options.env.items()
        self._heard: RateLimits | None = None
        self._reading = Reading()
        self._stream: TurnStream | None = None
        self._turn = AsyncExitStack()

    @override
    @classmethod
    async def start(cls, launch: Launch) -> Self:
        launch, log = cast(RequestLaunch, launch), APILog()
        session = await launch.abilities.open(partial(cls.open, launch), replace(launch.options, stderr=log.take))
        process = cls(launch, session, log)
        try:
            await process.set_up()
        except BaseException:
            await session.close()
            raise
        return process

    async def set_up(self) -> None:
        """Prepare the process for requests."""
        await self._abilities.probe(self.session)
        self._allowance.begin(self.session.info)
        self._allowed = self._allowance.tokens
        await self._allow_prompt()

    async def _allow_prompt(self) -> None:
        """Allow prompts up to their length in the CLI's count, as far as known."""
        await allow_prompt(self.session, self._allowed)

    def _raise_allowance(self) -> None:
        # A new process shows how long the CLI counts prompts; a used one may hold a rest of an earlier request.
        if self.uses == 1:
            self._allowed = self._allowance.raise_above(self._allowed)
        else:
            self._allowed += STEP_TOKENS

    @property
    def has_run_tools(self) -> bool:
        """True if the CLI has called tools for the current request, so that a retry is not allowed."""
        return False

    async def take(self, launch: Launch, request: MessagesRequest) -> None:
        """Make the process ready for a request. Makes no API call, so another process may retry it."""
        self._request = request
        wanted = {**launch.settings, **{variable(name): value for name, value in request.env.items()}}
        if self._was_left or self.session.settings.missing(wanted):
            self._numbers.advance()
        self._was_left = True
        self.log.expect(self._numbers.current)
        if self._has_log:
            wanted[variable(NUMBER_VARIABLE)] = self._numbers.current
        if not await self.apply(wanted):
            await self.ping()

    async def answer(self) -> AsyncIterator[Event]:
        """Yield the API's events for the current request, up to `message_stop`."""
        self.uses += 1
        try:
            async for event in self._events():
                if event["type"] == "message_start":
                    await self._prove()
                    await self.log.answered()
                    self._note_limits()
                elif self.log.is_mixed:
                    raise self._mixed()
                yield event
                if event["type"] == "message_stop":
                    return
        except ClaudeCodeError as error:
            if self._reading.has_status:
                await self._prove()
            await self.log.failed()
            raise with_limits(as_logged(error, self.log), self._note_limits()) from error.__cause__

    async def _prove(self) -> None:
        """Check that the API was called with the parameters of this request."""
        if not self._has_log or not self._abilities.can_prove:
            return
        if await self.log.called(_PROOF_SECONDS):
            self._abilities.has_proven = True
        elif self._abilities.has_proven:
            raise self._mixed()
        else:
            self._abilities.cannot_prove(self.session)

    def _mixed(self) -> CLIConnectionError:
        self._is_mixed = True
        logger.error("Process %s called the API with other parameters than those of its request", self.pid)
        return CLIConnectionError(
            reason="Claude Code called the API with the parameters of another request, so its answer was dropped",
            advice="Send the request again.",
        )

    def _note_limits(self) -> RateLimits | None:
        """Report the limits of the last response, as far as known, and return them."""
        limits = RateLimits.from_headers(self.log.headers) if self._has_log else self._heard
        if limits is not None and self.on_limits is not None:
            self.on_limits(limits)
        return limits

    def _note_limit_event(self, message: Message) -> None:
        """Read the limits from a message of the CLI, sent when they have changed."""
        if isinstance(message, RateLimitEvent) and not self._has_log:
            self._heard = RateLimits.from_event(message.rate_limit_info.raw) or self._heard
            self._note_limits()

    @property
    @override
    def is_untouched(self) -> bool:
        return self._request is None

    @property
    @override
    def is_of_another_day(self) -> bool:
        return self._has_history and super().is_of_another_day

    @override
    def unfit(self) -> str | None:
        if self.session.state == "dead":
            return "dead"
        return "mixed" if self._is_mixed else None

    @override
    async def reset(self) -> None:
        await self._finish()
        await self._forget()

    @override
    async def close(self) -> None:
        if self._reading.answer.is_complete:  # and only the CLI's last messages are missing
            with suppress(ClaudeCodeError, TimeoutError):
                async with asyncio.timeout(_LAST_WORDS_SECONDS):
                    await self._finish()
        await super().close()

    def _new_reading(self) -> Reading:
        return Reading()

    def _prompt(self) -> Content:
        return _PROMPT

    async def _events(self) -> AsyncIterator[Event]:
        # A used process may hold a rest of an earlier request, so the first retry has the same allowance: a larger one
        # than needed would let the CLI make a second API call.
        is_retried = self.uses == 1
        while True:
            self._reading = self._new_reading()
            async for event in self._events_of_turn():
                yield event
            if not self._reading.was_blocked or self._allowed > MOST_TOKENS:
                raise self._reading.failure(api_address(self.launch.options.env))
            logger.debug("A prompt was blocked at %d tokens, use %d of its process", self._allowed, self.uses)
            # The API has received no request.
            if is_retried:
                self._raise_allowance()
            is_retried = True
            await self._end_turn()
            await self._forget()
            await self._allow_prompt()

    async def _events_of_turn(self) -> AsyncIterator[Event]:
        stream = await self._turn.enter_async_context(self.session.stream(self._prompt()))
        self._stream = stream
        self.log.on_refusal = self._on_refusal
        try:
            early: list[Message] = []
            async for message in stream:
                events = self._reading.feed(message)
                if not self._reading.has_begun:
                    continue
                self._note_limit_event(message)
                early.append(message)
                # A turn stopped before its API call is not reported.
                if self._reading.answer.has_begun or (self._reading.has_ended and not self._reading.was_blocked):
                    for told in early:
                        self._deliver(told)
                    early.clear()
                for event in events:
                    yield event
                if self._reading.is_broken:
                    break
        except TurnError:
            pass  # the result has reported it, too

    def _on_refusal(self) -> None:
        """End the turn: the API has refused, and the CLI would try a different request."""
        if self._stream is not None and not self._reading.answer.is_complete:
            self._stream.give_up(CLIConnectionError(reason="The API has refused the request"))

    def _deliver(self, message: Message) -> None:
        """Pass a message to the caller, if it listens."""
        context = None if self._request is None else self._request.context
        if context is None or not context.has_listener:
            return
        if isinstance(message, ResultMessage):
            message = self._with_cost(message)
        context.deliver(message)

    def _with_cost(self, result: ResultMessage) -> ResultMessage:
        """Return the result with the cost of this request alone."""
        return with_cost(result, self._reading.answer.as_json())

    async def _finish(self) -> None:
        """End the turn and the request."""
        await self._end_turn()
        self._request = self.on_limits = None

    async def _end_turn(self) -> None:
        """Read the turn to its end; interrupt it if the CLI would ask the API again."""
        stream, self._stream, self.log.on_refusal = self._stream, None, None
        try:
            if stream is not None:
                if not self._reading.ends_by_itself:
                    await self.session.interrupt()
                async for message in stream:
                    self._note_limit_event(message)
                    self._deliver(message)
                self._was_left = self._has_log and not self.log.has_answer
        except ClaudeCodeError as error:
            logger.debug("A turn was ended by an error: %s", type(error).__name__)
        finally:
            await self._turn.aclose()
        await self.session.vacate()

    async def _forget(self) -> None:
        """Drop the prompt and all later messages from the conversation."""
        if not self._abilities.can_rewind:
            await self._clear()
            return
        await self.session.drop_messages()

    async def _clear(self) -> None:
        if NO_COMMANDS.keys() <= self.launch.options.extra_args.keys():  # the first process, used for the probe
            raise CLIConnectionError(reason="this process takes no command that clears its conversation")
        await self.session.reset(tools_changed=True)
        await self._allow_prompt()
