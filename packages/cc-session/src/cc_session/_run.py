"""One prompt that is run to its end, and what is done about it when its caller does not wait for that."""

from claude_agent_sdk import Message, ResultMessage

from cc_convert import convert_sdk_messages_to_cli_response

from ._driver import Driver
from ._exchange import Exchange
from .frames import Content, user_frame
from .turn import Turn
from .turn_errors import turn_error

__all__ = ["Run"]


class Run:
    """A prompt, from before it is sent until its result is read or it is left."""

    def __init__(self, driver: Driver, content: Content, *, verbatim: bool) -> None:
        self._driver = driver
        self._exchange = Exchange(user_frame(content, ask=True, verbatim=verbatim), asks=True)
        self._messages: list[Message] = []

    async def to_end(self) -> Turn:
        """Send the prompt and return the turn.

        Raises:
            TurnError: The turn failed.
        """
        await self._driver.begin(self._exchange)
        while not self._exchange.is_read:
            self._messages.append(await self._driver.next(self._exchange))
        turn = self.turn()
        if (error := turn_error(turn)) is not None:
            raise error
        return turn

    async def leave(self) -> None:
        """End the turn, if it runs; nobody reads it any more."""
        self._driver.leave(self._exchange)

    def turn(self) -> Turn:
        """What came of it, once its result is read."""
        result = self._messages[-1]
        assert isinstance(result, ResultMessage)
        response = convert_sdk_messages_to_cli_response(self._messages)
        spent = self._exchange.spent
        return Turn(
            text=response.result,
            messages=tuple(self._messages),
            result=result,
            usage=response.usage,
            model_usage=spent.models,
            cost_usd=spent.cost_usd,
        )
