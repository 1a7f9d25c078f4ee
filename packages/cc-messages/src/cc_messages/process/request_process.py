"""A pool's process that answers Messages API requests, one at a time, without state between them.

The request is in the extra body, whose fields replace the CLI's own, `messages` and `system` included. So the CLI gets
a prompt that the API never receives, makes one API call, and drops the prompt after the answer. Any process answers any
request of its launch key. Where the CLI runs the loop, the process has another plan (`loop/plan.py`).
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from datetime import datetime

from claude_agent_sdk import Message, RateLimitEvent, ResultMessage

from cc_convert import convert_sdk_messages_to_cli_response
from cc_session import TurnError, TurnStream
from cc_session.internals import Launch, LoginResult, PooledSession, Worker, api_address, variable
from cc_types import APIError, ClaudeCodeError, CLIConnectionError, PlanLimitError, RateLimits
from cc_types.failures import failure_of

from ..api.request import MessagesRequest
from ..api.response import Answer, Event, as_logged
from ..context import LoopEndedError
from .api_log import LOG_ENV, NUMBER_VARIABLE, APILog, call_numbers
from .plan import Reading, RequestLaunch, RequestPlan

logger = logging.getLogger(__name__)

# The log comes with the first event. It is late on an overloaded machine only, and without it there is no proof.
_PROOF_SECONDS = 5.0

# The time limit at shutdown for the last messages of an answered turn.
_LAST_MESSAGES_SECONDS = 1.0

# A request that waits takes a process as soon as it is idle.
_UNWANTED_SECONDS = 0.5

# The CLI may block the prompt that often before its API call; each time a longer one is allowed.
_MOST_ATTEMPTS = 125


class RequestProcess:
    """An adapter for a worker whose leases are requests. Its `resources` are released when it is closed."""

    def __init__(
        self, launch: RequestLaunch, session: PooledSession, log: APILog, plan: RequestPlan, resources: AsyncExitStack
    ) -> None:
        session.has_spans = False  # the request has one
        self.session = session
        self.log = log
        self.on_limits: Callable[[RateLimits], object] | None = None
        self.on_login: Callable[[datetime | None], object] | None = None
        """Called after an answer with the end of a login with `/login`; with None for another login."""
        self._launch, self._plan, self._resources = launch, plan, resources
        self._numbers = call_numbers({**os.environ, **launch.options.env})
        self._number = next(self._numbers)
        self._has_log = LOG_ENV.items() <= launch.options.env.items()
        self._was_left = self._is_mixed = False
        self._request: MessagesRequest | None = None
        self._reported_limits: RateLimits | None = None
        self.reading = Reading(Answer())
        self._stream: TurnStream | None = None
        self._turn = AsyncExitStack()

    @staticmethod
    async def start(launch: Launch) -> Worker:
        """Start a process for requests. Raises the errors of `Session.open()`."""
        launch, log = _of_request(launch), APILog()
        plan = launch.plan()
        async with AsyncExitStack() as resources:
            session = await plan.open(launch, replace(launch.options, stderr=log.take), resources)
            return Worker(launch, session, RequestProcess(launch, session, log, plan, resources.pop_all()))

    def matches(self, launch: Launch) -> bool:
        """Return true if neither a setting nor the caller's tools have to change for `launch`."""
        if self._plan.tool_server != _of_request(launch).tool_server:
            return False
        # With the caller's tools, our own server is in the setting.
        is_ours = self._plan.tool_server is not None
        settings = {name: value for name, value in launch.settings.items() if not (is_ours and name == "mcp_servers")}
        return not self.session.settings.missing(settings)

    async def take(self, launch: Launch, request: MessagesRequest, *, is_first: bool) -> None:
        """Make the process ready for a request. Makes no API call, so another process may retry it."""
        self._launch, self._request = _of_request(launch), request
        settings = {**launch.settings, **{variable(name): value for name, value in request.env.items()}}
        if self._was_left or self.session.settings.missing(settings):
            self._number = next(self._numbers)
        self._was_left = True
        self.log.expect(self._number)
        if self._has_log:
            settings[variable(NUMBER_VARIABLE)] = self._number
        await self._plan.prepare(launch, settings, request, is_first=is_first)

    async def answer(self, message: Answer) -> AsyncIterator[Event]:
        """Yield the API events for the current request, up to `message_stop`, and build `message` from them."""
        try:
            async for event in self._events(message):
                if event["type"] == "message_start":
                    await self._prove()
                    await self.log.answered()
                    self._note_limits()
                elif self.log.is_mixed:
                    raise self._mixed()
                yield event
                if event["type"] == "message_stop":
                    return
        except LoopEndedError:
            raise
        except ClaudeCodeError as error:
            if self.reading.result is not None and self.reading.result.api_error_status is not None:
                await self._prove()
            await self.log.failed()
            logged = as_logged(error, self.log.error, self.log.status, self.log.headers)
            raise _with_limits(logged, self._note_limits()) from error.__cause__

    async def _prove(self) -> None:
        """Check that the API was called with this request's parameters."""
        abilities = self._plan.abilities
        if not self._has_log or not abilities.can_prove:
            return
        if await self.log.called(_PROOF_SECONDS):
            abilities.has_proven = True
        elif abilities.has_proven:
            raise self._mixed()
        else:
            abilities.cannot_prove(self.session)

    def _mixed(self) -> CLIConnectionError:
        self._is_mixed = True
        logger.error("Process %s called the API with other parameters than its request's", self.session.pid)
        return CLIConnectionError(
            reason="Claude Code called the API with the parameters of another request, so its answer was dropped",
            advice="Send the request again.",
        )

    def _note_limits(self) -> RateLimits | None:
        """Report the limits in the last response, if any, and return them."""
        limits = RateLimits.from_headers(self.log.headers) if self._has_log else self._reported_limits
        if limits is not None and self.on_limits is not None:
            self.on_limits(limits)
        return limits

    def _note_facts(self, message: Message) -> None:
        """Read the end of the login from a result, and the limits from a CLI message, sent when they have changed."""
        if isinstance(message, ResultMessage) and self.on_login is not None:
            is_login = isinstance(message, LoginResult)
            self.on_login(convert_sdk_messages_to_cli_response([message]).credential_expires_at if is_login else None)
        if isinstance(message, RateLimitEvent) and not self._has_log:
            self._reported_limits = RateLimits.from_event(message.rate_limit_info.raw) or self._reported_limits
            self._note_limits()

    async def prepare(self, launch: Launch) -> None:
        """Check that the process answers, for a lease without a request."""
        self._launch = _of_request(launch)
        await self.session.ping()

    def unfit_while_idle(self, since: float) -> str | None:
        """Return why the process can serve no request any more, or None."""
        is_unwanted = self._launch.builder.login_has_ended and time.monotonic() - since > _UNWANTED_SECONDS
        if not self.session.is_ready or is_unwanted or self._plan.is_spent:
            return "dead"
        return "date" if self._plan.has_history and self.session.day.is_over else None

    @property
    def is_untouched(self) -> bool:
        """True if it has taken no request."""
        return self._request is None

    def unfit(self) -> str | None:
        """Return what the request has left that nothing undoes, or None."""
        if self.session.state == "dead":
            return "dead"
        if self._plan.is_spent:
            return "tools"
        if "permissions" in self.session.side_effects.others:  # an approval that goes beyond its call
            return "changed"
        return "mixed" if self._is_mixed else None

    async def reset(self) -> None:
        """End the turn, and empty the conversation; raise if that fails."""
        await self._finish()
        if (reason := self.unfit()) is not None:  # a call that came while the turn was being ended
            raise CLIConnectionError(reason=f"The process cannot be reset: {reason}")
        await self._plan.forget()

    async def close(self) -> None:
        """End the process; before that, wait a moment for the last messages of a complete answer."""
        try:
            if self.reading.answer.is_complete:  # and only the CLI's last messages are missing
                with suppress(ClaudeCodeError, TimeoutError):
                    async with asyncio.timeout(_LAST_MESSAGES_SECONDS):
                        await self._finish()
            await self.session.close()
        finally:
            await self._resources.aclose()

    async def _events(self, message: Answer) -> AsyncIterator[Event]:
        for attempt in range(_MOST_ATTEMPTS):
            if attempt > 0:
                logger.debug("A prompt was blocked %d times", attempt)
                await self._end_turn()
                await self._plan.forget(was_blocked=True)
            self.reading = self._plan.reading(message)
            async for event in self._events_of_turn():
                yield event
            if not self.reading.was_blocked:  # then the API has received the request
                break
        raise self.reading.failure(api_address(self._launch.options.env))

    async def _events_of_turn(self) -> AsyncIterator[Event]:
        stream = await self._turn.enter_async_context(self.session.stream(self._plan.prompt()))
        self._stream = stream
        self.log.on_refusal = self._on_refusal
        if self._request is not None and self._request.context is not None:
            self._request.context.on_end = stream.give_up
        try:
            early_messages: list[Message] = []
            async for message in stream:
                events = self.reading.feed(message)
                if not self.reading.has_begun:
                    continue
                self._note_facts(message)
                early_messages.append(message)
                # A turn stopped before its API call is not reported.
                has_ended = self.reading.result is not None and not self.reading.was_blocked
                if self.reading.answer.has_begun or has_ended:
                    for earlier in early_messages:
                        self._deliver(earlier)
                    early_messages.clear()
                await self.reading.go_on()
                for event in events:
                    yield event
                if self.reading.is_broken:
                    break
        except TurnError:
            pass  # the result has reported it, too

    def _on_refusal(self) -> None:
        """End the turn: the API has refused, and the CLI would try a different request."""
        is_over = self.reading.repeats_refused_calls or self.reading.answer.is_complete
        if self._stream is not None and not is_over:
            self._stream.give_up(CLIConnectionError(reason="The API has refused the request"))

    def _deliver(self, message: Message) -> None:
        """Pass a message to the caller, if it listens."""
        context = None if self._request is None else self._request.context
        if context is None or context.on_message is None:
            return
        if isinstance(message, ResultMessage):
            message = self.reading.with_cost(message)
        context.deliver(message)

    async def _finish(self) -> None:
        """End the turn and the request."""
        await self._end_turn()
        self._request = self.on_limits = self.on_login = None
        self.reading = Reading(Answer())  # the last one has the caller's objects

    async def _end_turn(self) -> None:
        """Read the turn to its end; interrupt it if the CLI would ask the API again."""
        stream, self._stream, self.log.on_refusal = self._stream, None, None
        try:
            if stream is not None:
                if not self.reading.ends_by_itself:
                    await self.session.interrupt()
                async for message in stream:
                    self._note_facts(message)
                    self._deliver(message)
                self._was_left = self._has_log and not self.log.has_answer
        except ClaudeCodeError as error:
            logger.debug("A turn was ended by an error: %s", type(error).__name__)
        finally:
            await self._turn.aclose()
        await self.session.vacate()


def _of_request(launch: Launch) -> RequestLaunch:
    """Return the launch, which is for requests: the transport's pool has no others."""
    assert isinstance(launch, RequestLaunch)  # noqa: S101
    return launch


def _with_limits(error: ClaudeCodeError, limits: RateLimits | None) -> ClaudeCodeError:
    """Return the error, as a `PlanLimitError` if `limits` show that a plan window is used up."""
    resets_at = None if limits is None else limits.exhausted_until
    if limits is None or resets_at is None or not isinstance(error, APIError):
        return error
    if error.status is None or failure_of(error.status).kind != "rate_limit":
        return error
    names = ("message", "error_type", "request_id", "retry_after", "details")
    return PlanLimitError(limits=limits, resets_at=resets_at, **{name: getattr(error, name) for name in names})
