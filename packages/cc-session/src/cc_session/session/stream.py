"""A turn that is read while it runs, with an OpenTelemetry span by the conventions for generative AI.

Without a tracer provider there is no span.
"""

import asyncio
import functools
import logging
import math
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import ExitStack, contextmanager, nullcontext
from types import TracebackType
from typing import Literal, Self, cast

from claude_agent_sdk import AssistantMessage, Message, ResultMessage, StreamEvent, UserMessage
from opentelemetry.trace import StatusCode, get_tracer

from ..background import on_background, tell_background, time_limit
from ..errors import TurnTimeoutError
from ..limits import checked_seconds
from .core import SessionCore
from .lease import LeaseTerm
from .sent_message import SentMessage, TurnEvent, TurnState
from .turn import Turn, turn_error

logger = logging.getLogger(__name__)

_TRACER = get_tracer("cc_session")


class TurnStream(AsyncIterator[Message]):
    """Messages of a turn, as they arrive. Created by `Session.stream()`, used with `async with` and `async for`.

    However slow the reader is, no message is lost, and a wait for a message may be cancelled and repeated. Leaving the
    block early interrupts the turn and waits for the end, `timeouts.close` at most; if the turn has not ended by then,
    its process is discarded. A cancelled caller does not wait.
    """

    def __init__(
        self,
        core: SessionCore,
        term: LeaseTerm,
        sent: SentMessage,
        seconds: float | None,
        max_cost_usd: float | None,
        *,
        has_span: bool,
    ) -> None:
        """Use `Session.stream()`."""
        self._core, self._term, self._sent = core, term, sent
        self._limits: dict[Literal["turn", "silence"], float | None] = {
            "turn": core.timeouts.turn if seconds is None else checked_seconds(seconds, "turn"),
            "silence": core.timeouts.silence,
        }
        self._max_cost_usd = core.extensions.max_cost_usd if max_cost_usd is None else max_cost_usd
        if self._max_cost_usd is not None and not 0 <= self._max_cost_usd < math.inf:
            raise ValueError(f"max_cost_usd must be an amount of US dollars, not {self._max_cost_usd!r}")
        self._span = _turn_span(lambda: self.turn if sent.is_read else None) if has_span else nullcontext()
        self._open_span = ExitStack()
        self._watchers: list[asyncio.Task[None]] = []
        self._is_over = False

    @functools.cached_property
    def turn(self) -> Turn:
        """The turn, as soon as its result was read, even if it failed.

        Raises:
            RuntimeError: The result was not read.
        """
        if not self._sent.is_read:
            raise RuntimeError("The turn was not read to its result, so its outcome is unknown")
        return Turn.of(self._sent.messages, cast(ResultMessage, self._sent.result), self._sent.spent)

    def give_up(self, error: Exception) -> None:
        """Interrupt the turn, and make its reader raise `error` after the messages received."""
        tell_background(self._leave, error)

    async def to_end(self) -> Turn:
        """Send the prompt, unless already sent, skip the messages, and return the turn. Raises as `Session.run()`."""
        with self._span if self._sent.state is TurnState.NEW else nullcontext():
            try:
                return await on_background(self._term.call, self._run)
            except asyncio.CancelledError:
                self._leave_soon()
                raise

    async def __aenter__(self) -> Self:
        """Send the prompt. Raises as a `Session`'s methods that send a message."""
        with ExitStack() as stack:
            stack.enter_context(self._span)
            try:
                await on_background(self._term.call, self._begin)
            except asyncio.CancelledError:
                self._leave_soon()
                raise
            self._open_span = stack.pop_all()
        return self

    async def __anext__(self) -> Message:
        """Return the next message; the last one is the result.

        Raises:
            TurnError: The turn failed; comes after the result.
            TurnTimeoutError: The turn took too long.
            ClaudeCodeError: The process ended or sent an unreadable message; the session is dead.
            RuntimeError: The stream is read before the `async with` block; after it there are no more messages.
        """
        sent = self._sent
        if sent.is_read or self._is_over:
            if not self._is_over:
                self._is_over = True
                self._checked_turn()
            raise StopAsyncIteration
        if sent.state is TurnState.NEW:
            raise RuntimeError("The prompt was not sent: use `async with session.stream(…)`")
        if not sent.has_unread():
            # Not through the lease term: the end of the lease also ends the turn.
            await on_background(sent.wait_until, sent.has_unread)
        return sent.take()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open_span.__exit__(kind, error, trace)
        if self._sent.is_read:
            return
        self._leave_soon()
        if not isinstance(error, asyncio.CancelledError):
            await on_background(self._leave)

    def _checked_turn(self) -> Turn:
        error = turn_error(self.turn, max_cost_usd=self._max_cost_usd, is_command=self._sent.is_command)
        if error is not None:
            raise error
        return self.turn

    def _leave_soon(self) -> None:
        # Not awaited: this must not be cancelled, and must be complete before the caller's next action.
        self._is_over = True
        self._sent.enter(TurnEvent.LEAVE)
        tell_background(self._leave)

    # The rest runs on the background loop.

    async def _begin(self) -> None:
        """Send the prompt when the session is free."""
        seconds = self._limits["turn"]
        deadline = None if seconds is None else asyncio.get_running_loop().time() + seconds
        try:
            async with time_limit(seconds, functools.partial(self._timeout, "turn")):
                await self._core.begin(self._sent, is_turn=True)
        except TurnTimeoutError:
            self._core.leave(self._sent)
            raise
        if deadline is not None or self._limits["silence"] is not None:
            self._watchers.append(asyncio.ensure_future(self._watch_time(deadline)))
        if self._max_cost_usd is not None:
            self._watchers.append(asyncio.ensure_future(self._watch_cost(self._max_cost_usd)))

    async def _run(self) -> Turn:
        if self._sent.state is TurnState.NEW:
            await self._begin()
        await self._sent.wait_until(self._sent.has_result)
        self._sent.take_all()
        return self._checked_turn()

    async def _leave(self, error: Exception | None = None) -> None:
        """End the turn, if it runs, and wait for the end; a reader gets `error`."""
        for watcher in self._watchers:
            watcher.cancel()
        self._core.leave(self._sent, error)
        await self._core.wait_for_end()

    async def _watch_time(self, deadline: float | None) -> None:
        """Abandon the turn when it takes too long, or is silent for too long."""
        loop, silence = asyncio.get_running_loop(), self._limits["silence"]
        while True:
            waits = [] if deadline is None else [deadline - loop.time()]
            if silence is not None:
                waits.append(silence - self._core.link.observer.silent_for())
            if min(waits) <= 0:
                break
            try:
                async with asyncio.timeout(min(waits)):
                    await self._sent.has_ended.wait()
                return
            except TimeoutError:
                continue
        is_late = deadline is not None and deadline <= loop.time()
        self._core.leave(self._sent, self._timeout("turn" if is_late else "silence"))

    async def _watch_cost(self, limit: float) -> None:
        """Interrupt the turn when it costs too much. Asks the CLI after each API call: no message has the cost."""
        sent, cost_before, count = self._sent, self._core.ledger.total_usd, 0

        def has_news() -> bool:
            return len(sent.messages) > count

        try:
            while not sent.has_result():
                await sent.wait_until(has_news)
                news = sent.messages[count:]
                count += len(news)
                if any(map(_ends_api_call, news)) and await self._cost() - cost_before > limit:
                    await self._core.interrupt_turn(sent)
        except Exception as error:
            # The reader gets the same error.
            logger.debug("The cost of a turn is not watched any more: %s", type(error).__name__)

    async def _cost(self) -> float:
        match await self._core.usage():
            case {"session": {"total_cost_usd": int() | float() as total}}:
                return float(total)
            case _:
                return 0.0  # an old CLI; the result has the cost

    def _timeout(self, limit: Literal["turn", "silence"]) -> TurnTimeoutError:
        seconds = cast(float, self._limits[limit])
        return TurnTimeoutError(limit=limit, seconds=seconds, messages=self._sent.messages)


def _ends_api_call(message: object) -> bool:
    return isinstance(message, UserMessage) or (
        isinstance(message, StreamEvent) and message.event.get("type") == "message_stop"
    )


@contextmanager
def _turn_span(turn: Callable[[], Turn | None]) -> Generator[None]:
    """Open a span for a turn; `turn` returns it at the end, if it was read."""
    span = _TRACER.start_span("invoke_agent Claude Code")
    try:
        yield
    except BaseException as error:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(StatusCode.ERROR)
        raise
    finally:
        if span.is_recording():
            span.set_attributes(_attributes(turn()))
        span.end()


def _attributes(turn: Turn | None) -> dict[str, str | int | float]:
    attributes: dict[str, str | int | float] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "claude-code",
        "gen_ai.agent.name": "Claude Code",
    }
    if turn is None:
        return attributes
    usage = turn.usage
    read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    models = [message.model for message in turn.messages if isinstance(message, AssistantMessage)]
    return attributes | {
        **({"gen_ai.response.model": models[0]} if models else {}),
        "gen_ai.conversation.id": turn.session_id,
        "gen_ai.usage.input_tokens": usage.input_tokens + read + written,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": read,
        "gen_ai.usage.cache_creation.input_tokens": written,
        "operation.cost": turn.cost_usd,
    }
