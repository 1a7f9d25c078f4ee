"""A turn that is read while it runs."""

import asyncio
import logging
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import NoReturn, Self, cast

from claude_agent_sdk import Message, ResultMessage, StreamEvent, UserMessage

from cc_convert import convert_sdk_messages_to_cli_response
from cc_types import ClaudeCodeError

from ..background import on_background, tell_background
from ..errors import TurnTimeoutError
from ..process.frames import Content, is_command, user_frame
from ..timeouts import checked_seconds
from .core import SessionCore
from .sent_message import SentMessage
from .turn import Turn
from .turn_errors import turn_error
from .turn_state import TurnEvent, TurnState
from .turn_usage import usage_of

__all__ = ["Run", "TurnLimits", "TurnStream"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimits:
    """Limits of a turn: duration and silence in seconds, and cost in US dollars."""

    turn: float | None
    silence: float | None
    max_cost_usd: float | None

    def __post_init__(self) -> None:
        if self.turn is not None:
            checked_seconds(self.turn, "turn")
        if self.max_cost_usd is not None and not 0 <= self.max_cost_usd < math.inf:
            raise ValueError(f"max_cost_usd must be an amount of US dollars, not {self.max_cost_usd!r}")


class Run:
    """A prompt, from before it is sent until its result is read or it is abandoned."""

    def __init__(self, core: SessionCore, content: Content, limits: TurnLimits, *, verbatim: bool) -> None:
        frame = user_frame(content, ask=True, verbatim=verbatim)
        self.sent = SentMessage(frame, asks=True, is_command=not verbatim and is_command(content))
        self._core = core
        self._limits = limits
        self._watching: list[asyncio.Task[None]] = []
        self._turn: Turn | None = None

    async def begin(self) -> None:
        """Send the prompt, when the session is free."""
        loop = asyncio.get_running_loop()
        deadline = None if self._limits.turn is None else loop.time() + self._limits.turn
        try:
            async with asyncio.timeout_at(deadline):
                await self._core.begin(self.sent, is_turn=True)
        except TimeoutError as error:
            if isinstance(error, ClaudeCodeError):
                raise
            self._core.leave(self.sent)
            raise self._turn_timeout() from error
        if deadline is not None or self._limits.silence is not None:
            self._watching.append(asyncio.ensure_future(self._watch_time(deadline)))
        if self._limits.max_cost_usd is not None:
            self._watching.append(asyncio.ensure_future(self._watch_cost(self._limits.max_cost_usd)))

    async def to_end(self) -> Turn:
        """Send the prompt, wait for the result and return the turn.

        Raises:
            TurnError: The turn failed.
        """
        await self.begin()
        await self.sent.wait_for_result()
        self._core.finish(self.sent)
        return self.checked_turn()

    async def leave(self, error: Exception | None = None) -> None:
        """End the turn, if it runs; its reader, if any, gets `error`."""
        for task in self._watching:
            task.cancel()
        self._core.leave(self.sent, error)

    async def left(self) -> None:
        """End the turn and wait until it has ended, or its process is being discarded. Bounded by `timeouts.close`."""
        await self.leave()
        await self._core.drained()

    def checked_turn(self) -> Turn:
        """Return the turn, once the result has arrived.

        Raises:
            TurnError: The turn failed.
        """
        turn = self.turn()
        if (error := turn_error(turn, max_cost_usd=self._limits.max_cost_usd)) is not None:
            raise error
        return turn

    def turn(self) -> Turn:
        """The turn, once its result has arrived."""
        self._turn = self._turn or self._made_turn()
        return self._turn

    def _made_turn(self) -> Turn:
        messages, result = tuple(self.sent.messages), cast(ResultMessage, self.sent.result)
        response = convert_sdk_messages_to_cli_response(messages)
        return Turn(
            text=response.result,
            messages=messages,
            result=result,
            usage=usage_of(messages, response.usage, is_cut_off=result.is_error),
            model_usage=self.sent.spent.models,
            cost_usd=self.sent.spent.cost_usd,
        )

    async def _watch_time(self, deadline: float | None) -> None:
        """Abandon the turn when it has taken too long, or was silent for too long."""
        loop = asyncio.get_running_loop()
        while True:
            waits = [] if deadline is None else [deadline - loop.time()]
            if self._limits.silence is not None:
                waits.append(self._limits.silence - self._core.silent_for())
            if min(waits) <= 0:
                break
            try:
                async with asyncio.timeout(min(waits)):
                    await self.sent.has_ended.wait()
                return
            except TimeoutError:
                continue
        error = self._turn_timeout() if deadline is not None and deadline <= loop.time() else self._silence_timeout()
        self._core.leave(self.sent, error)

    async def _watch_cost(self, limit: float) -> None:
        """Interrupt the turn when it has cost too much. Queried after each API call, since no message reports it."""
        before, seen = self._core.ledger.total_usd, 0
        try:
            while self.sent.result is None:
                await self.sent.wait(seen)
                news = self.sent.messages[seen:]
                seen += len(news)
                if any(map(_ends_api_call, news)) and await self._cost() - before > limit:
                    await self._core.interrupt_turn(self.sent)
        except Exception as error:
            # Its reader gets the same error.
            logger.debug("The cost of a turn is not watched any more: %s", type(error).__name__)

    async def _cost(self) -> float:
        match await self._core.usage():
            case {"session": {"total_cost_usd": int() | float() as total}}:
                return float(total)
            case _:
                return 0.0  # a CLI that does not report it: the result will

    def _turn_timeout(self) -> TurnTimeoutError:
        return TurnTimeoutError(limit="turn", seconds=self._limits.turn or 0.0, messages=self.sent.messages)

    def _silence_timeout(self) -> TurnTimeoutError:
        return TurnTimeoutError(limit="silence", seconds=self._limits.silence or 0.0, messages=self.sent.messages)


def _ends_api_call(message: object) -> bool:
    return isinstance(message, UserMessage) or (
        isinstance(message, StreamEvent) and message.event.get("type") == "message_stop"
    )


class TurnStream(AsyncIterator[Message]):
    """Messages of one turn, as they arrive. Created by `Session.stream()`, used with `async with` and `async for`.

    No message is dropped, however slowly it is read, and waiting for one may be cancelled and repeated. Leaving the
    block early interrupts the turn and waits until it has ended, for `timeouts.close` at most; a turn that has not
    ended by then takes its process with it. A cancelled caller does not wait.
    """

    def __init__(self, run: Run) -> None:
        """Use `Session.stream()`."""
        self._run = run
        self._is_over = False

    @property
    def turn(self) -> Turn:
        """The turn, also a failed one. Known as soon as its result was read.

        Raises:
            RuntimeError: It was not.
        """
        if not self._run.sent.is_read:
            raise RuntimeError("The turn was not read to its result, so its outcome is unknown")
        return self._run.turn()

    def give_up(self, error: Exception) -> None:
        """Interrupt the turn, and make its reader raise `error` after the messages received."""
        tell_background(self._run.leave, error)

    async def __aenter__(self) -> Self:
        """Send the prompt.

        Raises:
            SessionBusyError: A turn runs.
            ClaudeCodeError: The process ended or sent an unreadable message; the session is dead.
        """
        try:
            await on_background(self._run.begin)
        except asyncio.CancelledError:
            self._leave()
            raise
        return self

    async def __anext__(self) -> Message:
        """Return the next message; the last one is the result.

        Raises:
            TurnError: The turn failed; comes after the result.
            TurnTimeoutError: The turn took too long.
            ClaudeCodeError: The process ended or sent an unreadable message; the session is dead.
            RuntimeError: The stream is read outside of its `async with`.
        """
        sent = self._run.sent
        if sent.is_read or self._is_over:
            self._end()
        if sent.state is TurnState.NEW:
            raise RuntimeError("The prompt was not sent: use `async with session.stream(…)`")
        if not sent.has_unread():
            await on_background(sent.wait)
        return sent.take()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._run.sent.is_read:
            return
        self._leave()
        if not isinstance(error, asyncio.CancelledError):
            await on_background(self._run.left)

    def _end(self) -> NoReturn:
        if not self._is_over:
            self._is_over = True
            self._run.checked_turn()
        raise StopAsyncIteration

    def _leave(self) -> None:
        # Started, not awaited: this must not be cancelled, and must finish before the caller's next action.
        self._is_over = True
        self._run.sent.enter(TurnEvent.LEAVE)
        tell_background(self._run.leave)
