"""A turn that is read while it goes on."""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import NoReturn, Self

from claude_agent_sdk import Message

from ..background import on_background, tell_background
from .run import Run
from .turn import Turn

__all__ = ["TurnStream"]


class TurnStream(AsyncIterator[Message]):
    """The messages of one turn, as they come. Made by `Session.stream()`, used with `async with` and `async for`.

    No message is dropped, however slowly it is read, and waiting for one may be cancelled and begun again. Leaving the
    block before the end interrupts the turn and waits until it has ended, for `timeouts.close` at most; a turn that
    has not ended by then takes its process with it. Whoever is cancelled does not wait.
    """

    def __init__(self, run: Run) -> None:
        """Use `Session.stream()`."""
        self._run = run
        self._seen = 0
        self._is_over = False

    @property
    def turn(self) -> Turn:
        """What came of the turn, also of one that failed. Known as soon as its result was read.

        Raises:
            RuntimeError: It was not.
        """
        if not self._run.exchange.is_read:
            raise RuntimeError("The turn was not read to its result, so nobody knows what came of it")
        return self._run.turn()

    def give_up(self, error: Exception) -> None:
        """Have the turn interrupted, and its reader raise `error` after the messages that have come."""
        tell_background(self._run.leave, error)

    async def __aenter__(self) -> Self:
        """Send the prompt.

        Raises:
            SessionBusyError: A turn runs.
            ClaudeCodeError: The process ended or sent what cannot be read; the session is dead.
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
            ClaudeCodeError: The process ended or sent what cannot be read; the session is dead.
        """
        exchange = self._run.exchange
        if exchange.is_read or self._is_over:
            self._end()
        if self._seen == len(exchange.messages):
            await on_background(exchange.wait, self._seen)
        message = exchange.messages[self._seen]
        self._seen += 1
        exchange.is_read = message is exchange.result
        return message

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._run.exchange.is_read:
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
        # Told, not awaited: this must not be cancelled, and be done before anything that its caller does next.
        self._is_over = True
        self._run.exchange.is_left = True
        tell_background(self._run.leave)
